"""The part of `serve --config` that starts several models in one server."""

from argparse import Namespace
from logging import ERROR

from spanboost.cli.commands.serve import (
    describe_address,
    read_tls,
    read_tokens,
    request_limits,
    start_model,
)
from spanboost.cli.service_config import ModelConfig, read_config
from spanboost.errors import UsageError, UserError
from spanboost.service.http.app import Application, build_app
from spanboost.service.http.middleware import ADMIN, SCOPES
from spanboost.service.http.server import (
    Server,
    bind_socket,
    build_server,
    check_exposure,
    check_token,
    run,
    token_variable,
)
from spanboost.service.http.several_models import BASE, SeveralModels
from spanboost.service.log import log_to_stderr, write_log


def serve_models(args: Namespace) -> int:
    """Serve the models of a configuration file until the process is stopped."""
    configs = read_config(args, {scope: token_variable(scope) for scope in SCOPES})
    common, tls = read_tokens(), read_tls(args)
    for config in configs:
        check_exposure(args.host, config.tokens)
        for token in config.tokens.values():
            check_token(f"{args.config}: a token of the model {config.name!r}", token)
    check_exposure(args.host, common, (ADMIN,))
    share = 1 / len(configs)
    limits = {one.name: request_limits(one.args)._replace(memory_share=share) for one in configs}
    with bind_socket(args.host, args.port) as sock, log_to_stderr(args.log):
        apps = {
            one.name: build_app(None, one.tokens, one.args.id, limits[one.name]) for one in configs
        }
        server = build_server(SeveralModels(apps, common), tls)
        address = describe_address(sock, tls)
        return run(server, sock, lambda: _start_all(configs, apps, server, address))


def _start_all(
    configs: list[ModelConfig], apps: dict[str, Application], server: Server, address: str
) -> None:
    """Start the models one after another; the others start even if one cannot.

    UsageError if none can.
    """
    for config in configs:
        try:
            _start(config, apps[config.name], server, address)
        except (UserError, OSError) as error:
            apps[config.name].health.start_failed = True
            write_log(ERROR, f"the model {config.name!r} could not be started: {error}")
    if all(app.health.start_failed for app in apps.values()):
        raise UsageError("none of the models could be started; the log says why")


def _start(config: ModelConfig, app: Application, server: Server, address: str) -> None:
    def fail(why: str) -> None:
        server.fail(f"model {config.name!r}: {why}")

    start_model(app, config.args, fail, f"{address}{BASE}{config.name}")
