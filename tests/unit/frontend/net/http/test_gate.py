"""Which key a request needs."""

from __future__ import annotations

import pytest

from msx_frontend.errors import InvalidKey
from msx_frontend.keys.key import Key, Kind
from msx_frontend.net.http.call import Call
from msx_frontend.net.http.gate import Gate, management_keys, merged_keys
from tests.unit.frontend.net.http.client import scope

EITHER = ("management", "inference")


class Checked:
    """Has no valid key."""

    def __init__(self) -> None:
        self.kinds: tuple[Kind, ...] = ()

    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> Key:
        self.kinds = kinds
        raise InvalidKey("no")


@pytest.mark.parametrize(
    ("method", "path", "kinds"),
    [
        ("GET", "/models", ("management",)),
        ("DELETE", "/models/m/1.0", ("management",)),
        ("POST", "/workflows", ("management",)),
        ("POST", "/wfpredict/w", ("inference",)),
        ("GET", "/modelsx", EITHER),
        ("GET", "/ping", EITHER),
        ("GET", "/metrics", EITHER),
        ("GET", "/", EITHER),
    ],
)
def test_a_merged_listener(method: str, path: str, kinds: tuple[Kind, ...]) -> None:
    tokens = Checked()
    with pytest.raises(InvalidKey):
        Gate(tokens, merged_keys).check(Call(scope(method, path)))
    assert tokens.kinds == kinds


@pytest.mark.parametrize(
    ("method", "path"), [("OPTIONS", "/"), ("GET", "/api-description"), ("GET", "/livez"), ("POST", "/token")]
)
def test_what_is_open(method: str, path: str) -> None:
    for keys in (merged_keys, management_keys):
        Gate(Checked(), keys).check(Call(scope(method, path)))
