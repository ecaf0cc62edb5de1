# The learning service (docs/service.md). The tests do not build this image.
FROM python:3.12-slim
RUN useradd --create-home --uid 10001 spanboost
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir ".[serve]"
USER spanboost
WORKDIR /home/spanboost
# a new volume gets the owner of the folder that it covers
RUN mkdir state
VOLUME /home/spanboost/state
ENV NUMBA_CACHE_DIR=/home/spanboost/compiled
# so that the first model starts at once; leave it out for a smaller image
RUN spanboost warmup
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz')"]
ENTRYPOINT ["spanboost", "serve", "--dir", "/home/spanboost/state", "--host", "0.0.0.0"]
