"""The address of an endpoint, as `start_grpc_server` and `start_restful_server` take it."""

import re

_PORTS = range(1, 65536)
_UNIX = "unix:"


def check_grpc_address(address: str) -> None:
    """`host:port` or `unix:path`. Raises RuntimeError."""
    if not address.startswith(_UNIX):
        check_host_and_port(address, "Serving gRPC")
    elif address == _UNIX:
        raise failed("Empty grpc server unix domain socket address")


def check_rest_address(address: str) -> None:
    """`host:port`. Raises RuntimeError."""
    if address.startswith(_UNIX):
        raise failed("RESTful server does not support binding to unix domain socket")
    check_host_and_port(address, "RESTful server")


def failed(text: str) -> RuntimeError:
    """An error as MindSpore Serving's native part raises it."""
    return RuntimeError(f"Raise failed: Serving Error: {text}")


def check_host_and_port(address: str, server: str) -> None:
    """`server` is what the texts call it. Raises RuntimeError."""
    host, colon, port = address.rpartition(":")
    if not colon:
        raise failed(f"The format of the {server} address '{address}' is illegal")
    if not host or not port:
        raise failed(f"Missing ip or port of the {server} address '{address}'")
    if not re.fullmatch(r"[+-]?[0-9]+", port):
        raise failed(f"The type of {server} address '{address}' port is not a number")
    if len(port) > len("+065535") or int(port) not in _PORTS:
        raise failed(f"The port of the {server} address '{address}' is out of legal range [1 ~ 65535]")
