"""Who is shown what by /openapi.json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msx_core.service_errors import InvalidKey
from msx_frontend.apis.openapi.family import openapi
from msx_frontend.apis.openapi.models import DescribedModel
from msx_frontend.keys.key import Key, KeyKind
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.request import Request
from msx_sdk.kserve import Signature, TensorMeta
from tests.frontend.apis.families import of_listener
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog, ask
from tests.net.http.exchanges import exchange_of

TENSOR = TensorMeta("x", "FP32", (1,))


def key(kind: KeyKind, models: frozenset[str] | None = None) -> Key:
    return Key(b"", frozenset({kind}), "team", models=models)


class FakeTokens:
    keys = {
        "all": key("inference"),
        "limited": key("inference", frozenset({"b"})),
        "management": key("management"),
    }

    def check_any(self, kinds: tuple[str, ...], authorization: str | None) -> Key:
        if authorization not in self.keys:
            raise InvalidKey("no")
        return self.keys[authorization]


def models() -> Iterator[DescribedModel]:
    for name in ("a", "b"):
        yield DescribedModel(name, Signature((TENSOR,), (TENSOR,)))


def asked(authorization: str = "", *, tokens: Any = None, method: str = "GET") -> Exchange:
    own = of_listener("inference")
    edge = exchange_of(openapi("MSX", own, models, tokens), *own, log=FakeAccessLog(), tokens=tokens)
    headers = {"authorization": authorization} if authorization else {}
    return run(ask(edge, method, "/openapi.json", b"", **headers))


def shown(authorization: str = "", *, tokens: Any = None) -> set[str]:
    return {path for path in asked(authorization, tokens=tokens).json["paths"] if path in PATHS}


PATHS = {"/predictions/a", "/predictions/b", "/v2/models/a/infer", "/v2/models/b/infer"}
FAKE = FakeTokens()


def test_without_a_key_no_model_is_shown() -> None:
    assert asked(tokens=FAKE).status == 200
    assert shown(tokens=FAKE) == set()


def test_with_a_key_its_models_are_shown() -> None:
    assert shown("all", tokens=FAKE) == PATHS
    assert shown("limited", tokens=FAKE) == {"/predictions/b", "/v2/models/b/infer"}
    assert shown("management", tokens=FAKE) == set()


def test_a_wrong_key_is_refused() -> None:
    assert asked("wrong", tokens=FAKE).json["type"] == "InvalidKeyException"


def test_where_no_keys_are_asked_for_all_models_are_shown() -> None:
    assert shown() == PATHS


def test_it_describes_itself() -> None:
    assert "/openapi.json" in asked().json["paths"]


def test_head() -> None:
    assert asked(method="HEAD").headers["content-length"] == asked().headers["content-length"]


def test_a_route_that_comes_and_goes() -> None:
    async def answer(request: Request) -> Reply:
        return Reply(b"")

    there = [False]
    route = Route("GET", "/late", answer, summary="Later", when=lambda: there[0])
    family = Family("late", (route,), torchserve_failure)
    edge = exchange_of(openapi("MSX", [family], lambda: (), None), family, log=FakeAccessLog())
    before = run(ask(edge, "GET", "/openapi.json")).json["paths"]
    there[0] = True
    after = run(ask(edge, "GET", "/openapi.json")).json["paths"]
    assert ("/late" in before, "/late" in after) == (False, True)
