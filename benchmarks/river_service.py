"""A plain FastAPI + River service without journal, ids or limits.

Run it with `python -m benchmarks.river_service MODEL PORT`.
"""

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from river import ensemble, forest, linear_model, preprocessing


def linear() -> Any:
    """Create a linear model."""
    return preprocessing.StandardScaler() | linear_model.LinearRegression()


MODELS = {
    "linear": linear,
    "32 linear": lambda: ensemble.BaggingRegressor(linear(), n_models=32, seed=0),
    "10 trees": lambda: forest.ARFRegressor(n_models=10, seed=0),
}


def application(name: str) -> FastAPI:
    """Create the application, which predicts and learns."""
    app, model = FastAPI(), MODELS[name]()

    @app.post("/predict")
    def predict(rows: list[dict[str, float]]) -> dict[str, list[float]]:
        return {"prediction": [model.predict_one(row) for row in rows]}

    @app.post("/learn")
    def learn(rows: list[dict[str, float]]) -> dict[str, int]:
        for row in rows:
            label = row.pop("label")
            model.learn_one(row, label)
        return {"learned": len(rows)}

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "alive"}

    return app


if __name__ == "__main__":
    uvicorn.run(
        application(sys.argv[1]), port=int(sys.argv[2]), log_level="error", access_log=False
    )
