"""`@method`: which methods a handler has, what they answer, and what is refused when it is loaded."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from msx_core.methods import MethodInfo, announced
from msx_core.packed import PACKED, pack, unpack
from msx_core.resolve import resolve_object
from msx_sdk import Context, Handler, HandlerLoadError, PredictionError, method
from msx_sdk.handler import Data
from msx_sdk.request import InferenceRequest, Part
from msx_sdk.testing import LocalModel
from tests.core.recording import LAST, requests, run, run_alone


class Classifies(Handler):
    def handle(self, data: Data, context: Context) -> list[Any]:
        return ["handle"] * len(data)

    @method("classify_top")
    def top(self, data: Data, context: Context) -> list[Any]:
        """The best class.

        And more.
        """
        return [{"top": row["body"], "method": context.method, "of": len(data)} for row in data]

    @method
    def words(self, data: Data, context: Context) -> Iterator[list[Any]]:
        yield ["a"] * len(data)
        yield ["b"] * len(data)

    @method(summary="Never works")
    def fails(self, data: Data, context: Context) -> list[Any]:
        raise PredictionError(418, "no")


def test_they_are_listed() -> None:
    assert announced(resolve_object(Classifies).offered_methods) == (
        MethodInfo(name="classify_top", summary="The best class."),
        MethodInfo(name="words"),
        MethodInfo(name="fails", summary="Never works"),
    )
    assert resolve_object(Handler).offered_methods is None


def test_each_answers_its_own_requests() -> None:
    with LocalModel(Classifies) as model:
        assert [reply.body for reply in model.predict([1, 2])] == [b"handle", b"handle"]
        top = model.predict([1, 2], method="classify_top")
        assert [reply.json() for reply in top] == [
            {"top": 1, "method": "classify_top", "of": 2},
            {"top": 2, "method": "classify_top", "of": 2},
        ]
        assert top[0].headers == {"content-type": "application/json"}
        assert model.predict([1], method="words")[0].chunks == [b"a", b"b", b""]
        failed = model.predict([1], method="fails")[0]
        assert (failed.status, failed.failure and failed.failure.message) == (418, "no")


def test_an_unknown_one_is_404_and_the_known_ones_are_named() -> None:
    with LocalModel(Classifies) as model:
        unknown, *others = model.predict([1], method="x"), *model.predict([1], method="classify_top")
        assert (unknown[0].status, others[0].status) == (404, 200)
        assert unknown[0].failure is not None
        assert (
            unknown[0].failure.message
            == "Model \"local\" has no method 'x': its methods are classify_top, fails, words."
        )
    with LocalModel(lambda data, context: data) as model:
        failure = model.predict([1], method="x")[0].failure
        assert failure is not None
        assert failure.message == "Model \"local\" has no method 'x': it has none."


def test_a_body_that_is_not_json_fails_alone_as_for_handle() -> None:
    json = "application/json"
    batch = [InferenceRequest(n, {"body": Part(n.encode(), json)}, operation="method:classify_top") for n in ("1", "x")]
    sink = run(Classifies(), batch)
    assert sink.events["1"] == [b'{\n  "top": 1,\n  "method": "classify_top",\n  "of": 1\n}', LAST]
    assert sink.failure("x").status == 400


def test_a_packed_reply() -> None:
    request = InferenceRequest("r", {"body": Part(pack([1]), PACKED)}, operation="packed:classify_top")
    (reply, last) = run(Classifies(), [request]).events["r"]
    assert (unpack(reply), last) == ({"top": [1], "method": "classify_top", "of": 1}, LAST)


class Overrides(Classifies):
    def top(self, data: Data, context: Context) -> list[Any]:
        return ["mine"] * len(data)

    words = None  # type: ignore[assignment]

    @method("fails2")
    def fails(self, data: Data, context: Context) -> list[Any]:
        return ["fine"] * len(data)


def test_subclasses() -> None:
    handler = resolve_object(Overrides)
    assert list(handler.methods) == ["classify_top", "fails2"]
    with LocalModel(Overrides) as model:
        assert model.predict([1], method="classify_top")[0].body == b"mine"


class Announces(Classifies):
    def offered_methods(self) -> list[MethodInfo]:
        return [MethodInfo(name="words", summary="Said by itself"), MethodInfo(name="own")]

    def handle(self, data: Data, context: Context) -> list[Any]:
        return [context.method] * len(data)


def test_those_that_a_handler_announces_itself() -> None:
    infos = announced(resolve_object(Announces).offered_methods)
    assert [(one.name, one.summary) for one in infos] == [
        ("words", "Said by itself"),
        ("own", ""),
        ("classify_top", "The best class."),
        ("fails", "Never works"),
    ]
    with LocalModel(Announces) as model:
        assert model.predict([1], method="own")[0].body == b"own"  # it finds out itself, in handle


def test_functions_of_a_module() -> None:
    module = ModuleType("of_functions")
    module.handle = lambda data, context: ["handle"]  # type: ignore[attr-defined]
    module.other = method("other")(lambda data, context: ["other"])  # type: ignore[attr-defined]
    sys.modules["of_functions"] = module
    try:
        handler = resolve_object(module)
    finally:
        del sys.modules["of_functions"]
    assert list(handler.methods) == ["other"]


class Async(Handler):
    async def handle(self, data: Data, context: Context) -> list[Any]:
        return ["handle"]

    @method
    async def top(self, data: Data, context: Context) -> list[Any]:
        return ["top"]

    @method
    async def words(self, data: Data, context: Context) -> AsyncIterator[list[Any]]:
        yield ["a"]


def test_async_handlers() -> None:
    asked = {name: InferenceRequest("r", {}, operation=f"method:{name}") for name in ("top", "words", "x")}
    assert run_alone(Async(), asked["top"]).events["r"] == [b"top", LAST]
    assert run_alone(Async(), asked["words"]).events["r"] == [b"a", b"", LAST]
    assert run_alone(Async(), asked["x"]).failure("r").status == 404
    assert run_alone(Async(), requests(b"")[0]).events["r0"] == [b"handle", LAST]


def test_continuous_handlers() -> None:
    class Counts(Classifies):
        def handle(self, data: Data, context: Context) -> list[Any]:
            context.stopping_criteria = [lambda value: False] * len(data)
            return ["more"] * len(data)

    with LocalModel(Counts, config={"continuousBatching": True}) as model:
        assert [one.json()["of"] for one in model.predict([1, 2], method="classify_top")] == [2, 2]


def takes_one(self: Any, data: Data) -> list[Any]:
    return data


async def is_async(self: Any, data: Data, context: Context) -> list[Any]:
    return data


def twice(self: Any, data: Data, context: Context) -> list[Any]:
    return data


@pytest.mark.parametrize(
    ("base", "members", "message"),
    [
        (Handler, {"f": takes_one}, r"the method H\.f cannot be called with \(data, context\): too many"),
        (Handler, {"f": is_async}, r"the method H\.f is async def, and handle is not: a handler answers all"),
        (Async, {"f": twice}, r"the method H\.f is not async def, and handle is: a handler answers all"),
        (Handler, {"f": twice, "g": twice}, r"H has two methods with the name 'm': rename one of them"),
    ],
)
def test_what_is_refused_when_it_is_loaded(base: type, members: dict[str, Callable[..., Any]], message: str) -> None:
    made = type("H", (base,), {name: method("m")(function) for name, function in members.items()})
    with pytest.raises(HandlerLoadError, match=message):
        resolve_object(made)


@pytest.mark.parametrize("name", ["a:b", "1", "a/b", "ä", "x" * 201])
def test_a_name_that_a_path_cannot_have(name: str) -> None:
    with pytest.raises(HandlerLoadError, match="is not a valid name of a method: it must begin with a letter or '_'"):
        method(name)(twice)
