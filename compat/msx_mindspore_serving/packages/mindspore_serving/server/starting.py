"""Functions that start scripts call: `start_servables`, `start_grpc_server`, `start_restful_server` and `stop`."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from .._checks import check_int, check_str
from .console import say
from .listen_address import check_grpc_address, check_rest_address, failed
from .script_server import SERVER
from .server_process import ServerError
from .ssl_config import SSLConfig
from .start_config import ServableStartConfig
from .start_list import StartedServable, checked, merged

_MOST_MEGABYTES = 512

P = ParamSpec("P")
T = TypeVar("T")


def or_stop(call: Callable[P, T]) -> Callable[P, T]:
    """Stop the whole server first when a start call fails."""

    @wraps(call)
    def start(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except BaseException:
            SERVER.stop()
            raise

    return start


@or_stop
def start_servables(
    servable_configs: ServableStartConfig | list[ServableStartConfig] | tuple[ServableStartConfig, ...],
    enable_lite: bool = False,
) -> None:
    """Returns when every worker of these servables is ready. Raises RuntimeError."""
    configs = checked(servable_configs)
    try:
        servables = merged(configs)
    except RuntimeError as error:
        say(f"Start servables failed: {error}")
        raise
    if (server := SERVER.running) is not None and server.has_servables:
        raise failed("Master gRPC server is already running")
    server = SERVER.started()
    server.has_servables = True
    try:
        server.ask("load", servables=[_said(one) for one in servables], lite=bool(enable_lite))
    except ServerError as error:
        raise RuntimeError(_why(error)) from None


@or_stop
def start_grpc_server(address: str, max_msg_mb_size: int = 100, ssl_config: SSLConfig | None = None) -> None:
    """Raises RuntimeError, or FileNotFoundError for a certificate or key that is missing."""
    check_str("address", address)
    check_int("max_msg_mb_size", max_msg_mb_size, 1, _MOST_MEGABYTES)
    if ssl_config is not None:
        if not isinstance(ssl_config, SSLConfig):
            raise RuntimeError("The type of ssl_config should be type of SSLConfig")
        _check_files(ssl_config)
    _check_not_running("grpc", "Serving gRPC server")
    check_grpc_address(address)
    try:
        _open("grpc", _absolute(address), max_msg_mb_size, ssl_config)
    except ServerError as error:
        raise _unexpected(error) or failed(
            f"Serving gRPC server start failed, create server failed, address {address}"
        ) from None
    say(f"Serving gRPC server start success, listening on {address}")


@or_stop
def start_restful_server(address: str, max_msg_mb_size: int = 100, ssl_config: SSLConfig | None = None) -> None:
    """Raises RuntimeError."""
    check_str("address", address)
    check_int("max_msg_mb_size", max_msg_mb_size, 1, _MOST_MEGABYTES)
    if ssl_config is not None and not isinstance(ssl_config, SSLConfig):
        raise RuntimeError("The type of ssl_config should be class of SSLConfig")
    _check_not_running("rest", "RESTful server")
    check_rest_address(address)
    try:
        _open("rest", address, max_msg_mb_size, ssl_config)
    except ServerError as error:
        raise _unexpected(error) or failed(_rest_failure(error, address, ssl_config)) from None
    say(f"Serving RESTful server start success, listening on {address}")


def stop() -> None:
    """Returns when the server and its workers have ended. Everything can be started again then."""
    SERVER.stop()


def _open(api: str, address: str, megabytes: int, ssl_config: SSLConfig | None) -> None:
    server = SERVER.started()
    files = None
    if ssl_config is not None:
        files = {
            "certificate": os.path.abspath(ssl_config.certificate),
            "private_key": os.path.abspath(ssl_config.private_key),
            "custom_ca": ssl_config.custom_ca and os.path.abspath(ssl_config.custom_ca),
        }
    server.ask("open", api=api, address=address, limit=megabytes << 20, tls=files)
    server.listening.add(api)


def _check_not_running(api: str, server: str) -> None:
    if SERVER.running is not None and api in SERVER.running.listening:
        raise failed(f"{server} is already running")


def _check_files(ssl_config: SSLConfig) -> None:
    """Raises OSError."""
    for path in (ssl_config.certificate, ssl_config.private_key, ssl_config.custom_ca):
        if path is not None:
            with open(path, "rb"):
                pass


def _absolute(address: str) -> str:
    """The folder of the server process is the script's, but may not stay so."""
    unix, found, path = address.partition("unix:")
    return f"unix:{os.path.abspath(path)}" if found and not unix else address


def _rest_failure(error: ServerError, address: str, ssl_config: SSLConfig | None) -> str:
    if ssl_config is not None:
        if error.kind == "certificate":
            return f"load certificate_chain from {ssl_config.certificate} failed"
        if error.kind == "private_key":
            return f"load private_key from {ssl_config.private_key} failed"
        if error.kind == "custom_ca":
            return f"load root certificate from {ssl_config.custom_ca} failed"
    return f"RESTful server start failed, bind to the socket address {address} failed"


def _unexpected(error: ServerError) -> RuntimeError | None:
    """The server itself has ended, or is ending."""
    return RuntimeError(_why(error)) if error.kind in ("gone", "bug") else None


def _why(error: ServerError) -> str:
    if SERVER.signalled:
        return "Fail to start workers because of signal SIGINT or SIGTERM"
    if error.kind == "worker":
        more = error.more
        if "extra" in more:
            name, version, extra = more["name"], more["version"], more["extra"]
            return f"Fail to start workers: {{servable:{name}, version:{version}, extra:{extra}, <{error.detail}>}}"
        return f"Fail to start workers: {{servable name:{more['name']}, device id:{more['device']}, <{error.detail}>}}"
    return f"Start worker failed: {error.detail}"


def _said(one: StartedServable) -> dict[str, Any]:
    return {
        "directory": one.directory,
        "name": one.name,
        "version": one.version,
        "device_ids": one.device_ids,
        "device_type": one.device_type,
        "num_parallel_workers": one.num_parallel_workers,
        "dec_key": one.dec_key and b64encode(one.dec_key).decode(),
        "dec_mode": one.dec_mode,
    }
