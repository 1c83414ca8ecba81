from __future__ import annotations

from collections.abc import Callable

import pytest

from msx_mindspore_serving.packages.mindspore_serving.server.listen_address import (
    check_grpc_address,
    check_rest_address,
)

SERVERS = [(check_grpc_address, "Serving gRPC"), (check_rest_address, "RESTful server")]
REFUSED = [
    ("5500", "The format of the {T} address '5500' is illegal"),
    (":5500", "Missing ip or port of the {T} address ':5500'"),
    ("127.0.0.1:", "Missing ip or port of the {T} address '127.0.0.1:'"),
    ("127.0.0.1:x", "The type of {T} address '127.0.0.1:x' port is not a number"),
    ("127.0.0.1:1.5", "The type of {T} address '127.0.0.1:1.5' port is not a number"),
    ("127.0.0.1:0", "The port of the {T} address '127.0.0.1:0' is out of legal range [1 ~ 65535]"),
    ("127.0.0.1:-1", "The port of the {T} address '127.0.0.1:-1' is out of legal range [1 ~ 65535]"),
    ("127.0.0.1:65536", "The port of the {T} address '127.0.0.1:65536' is out of legal range [1 ~ 65535]"),
    (f"h:{'9' * 5000}", f"The port of the {{T}} address 'h:{'9' * 5000}' is out of legal range [1 ~ 65535]"),
]


@pytest.mark.parametrize(("check", "server"), SERVERS, ids=["grpc", "rest"])
@pytest.mark.parametrize(("address", "text"), REFUSED, ids=[address[:20] for address, _ in REFUSED])
def test_addresses_that_are_refused(check: Callable[[str], None], server: str, address: str, text: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        check(address)
    assert str(raised.value) == "Raise failed: Serving Error: " + text.format(T=server)


def test_unix_sockets_are_for_grpc() -> None:
    check_grpc_address("unix:serving.sock")
    for check, address, text in (
        (check_grpc_address, "unix:", "Empty grpc server unix domain socket address"),
        (check_rest_address, "unix:a", "RESTful server does not support binding to unix domain socket"),
        (check_rest_address, "unix:", "RESTful server does not support binding to unix domain socket"),
    ):
        with pytest.raises(RuntimeError) as raised:
            check(address)
        assert str(raised.value) == f"Raise failed: Serving Error: {text}"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "localhost:65535", "a:b:5500", "[::1]:5500", "0.0.0.0:05500"])
def test_addresses_that_only_the_system_can_judge(address: str) -> None:
    """Two colons are judged when it is bound."""
    check_grpc_address(address)
    check_rest_address(address)
