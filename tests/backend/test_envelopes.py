from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_backend.envelopes import wrapped
from msx_core.batch import Batch
from msx_core.resolve import resolve_object
from msx_sdk import HandlerLoadError, method
from msx_sdk.context import Context, ModelInfo
from msx_sdk.request import Headers, InferenceRequest
from tests.plugins import install_module


def context_of(count: int, **headers: str) -> Context:
    context = Context(ModelInfo("m"))
    context.bind(Batch([InferenceRequest(f"id-{n}", {}, Headers(headers)) for n in range(count)], None))
    return context


def answer(name: str, bodies: list[Any], handler: Any, **headers: str) -> Any:
    handle = wrapped(resolve_object(handler), name).handle
    return handle([{"body": body} for body in bodies], context_of(len(bodies), **headers))


def test_instances_of_several_requests_are_one_batch() -> None:
    seen: list[Any] = []

    def handle(data: Any, context: Any) -> Any:
        seen.append(data)
        return [value * 10 for value in data]

    assert answer("kserve", [{"instances": [1, 2]}, {"instances": []}, {"instances": [3]}], handle) == [
        {"predictions": [10, 20]},
        {"predictions": []},
        {"predictions": [30]},
    ]
    assert seen == [[1, 2, 3]]


def test_an_answer_of_another_length() -> None:
    """It is the answer of a single request; of several it could belong to any."""
    assert answer("json", [{"instances": [1, 2]}], lambda data, context: [sum(data)]) == ['{"predictions": [3]}']
    with pytest.raises(ValueError, match="given 2 inputs of 2 requests, and returned 1"):
        answer("json", [{"instances": [1]}, {"instances": [2]}], lambda data, context: [sum(data)])


def test_an_instance_that_failed_fails_its_request() -> None:
    error = ValueError("bad")
    replies = answer("kserve", [{"instances": [1]}, {"instances": [2, 3]}], lambda data, context: [1, 2, error])
    assert replies == [{"predictions": [1]}, error]


def test_arrays_in_the_json_envelope() -> None:
    replies = answer("json", [{"instances": [1]}], lambda data, context: [np.array([1.5, 2.5])])
    assert replies == ['{"predictions": [[1.5, 2.5]]}']


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1.5, 2], ("FP64", [1.5, 2.0], [2])),
        ([[1, 2], [3, 4]], ("INT64", [1, 2, 3, 4], [2, 2])),
        ([True, False], ("BOOL", [True, False], [2])),
        (np.zeros((1, 2), np.float32), ("FP32", [0.0, 0.0], [1, 2])),
        ("text", ("BYTES", ["text"], [])),
        (["a", "b"], ("BYTES", ["a", "b"], [2])),
        (b"raw", ("BYTES", ["raw"], [1])),
        ({"cat": 0.5}, ("BYTES", ['{"cat": 0.5}'], [1])),
        ([[1], [2, 3]], ("BYTES", ["[1]", "[2, 3]"], [2])),
    ],
)
def test_outputs_of_kservev2(value: Any, expected: tuple[str, list[Any], list[int]]) -> None:
    body = {"inputs": [{"name": "a", "shape": [1], "datatype": "INT8", "data": [1]}]}
    [reply] = answer("kservev2", [body], lambda data, context: [value, value])
    first, second = reply["outputs"]
    assert (first["datatype"], first["data"], first["shape"]) == expected
    assert (first["name"], second["name"]) == ("a", "output1")


def test_kservev2_of_several_requests() -> None:
    inputs = [{"name": "a", "shape": [1], "datatype": "INT8", "data": [1]}]
    bodies = [{"inputs": inputs, "id": "x"}, {"inputs": inputs}]
    replies = answer("kservev2", bodies, lambda data, context: [entry["data"] for entry in data])
    assert [reply["id"] for reply in replies] == ["x", "id-1"]


@pytest.mark.parametrize("name", ["body", "json", "kserve", "kservev2"])
def test_the_question_what_the_model_is_comes_without_an_envelope(name: str) -> None:
    assert answer(name, [b""], lambda data, context: ["as it is"], describe="True") == ["as it is"]


def test_an_example_comes_without_an_envelope() -> None:
    handle = wrapped(resolve_object(lambda data, context: data), "json").handle
    context = Context(ModelInfo("m"))
    context.bind(Batch([InferenceRequest.of_data("warmup-0", {"body": 1})], None))
    assert handle([{"body": 1}], context) == [{"body": 1}]


def test_an_async_handler() -> None:
    async def double(data: Any, context: Any) -> Any:
        return [2 * value for value in data]

    handler = wrapped(resolve_object(double), "kserve")
    assert handler.is_async
    answered = handler.handle([{"body": {"instances": [1, 2]}}], context_of(1))
    assert asyncio.run(answered) == [{"predictions": [2, 4]}]


def test_a_handler_that_streams_by_yield_has_no_whole_reply() -> None:
    def stream(data: Any, context: Any) -> Any:
        yield data

    with pytest.raises(HandlerLoadError, match="service_envelope=json packs whole replies"):
        wrapped(resolve_object(stream), "json")


MINE = """
from msx_torchserve.envelopes.base import BaseEnvelope

class Unrelated:
    pass

class WordsEnvelope(BaseEnvelope):
    def parse_input(self, data):
        return [bytes(row["body"]).decode().split() for row in data]

    def format_output(self, data):
        return [" ".join(words) for words in data]
"""
PLAIN = """
class Plain:
    def __init__(self, handle):
        self.wrapped, self.calls = handle, 0

    def handle(self, data, context):
        self.calls += 1
        return [{"call": self.calls, "wrapped": answer} for answer in self.wrapped(data, context)]
"""


def module(folder: Path, name: str, code: str, patch: pytest.MonkeyPatch) -> None:
    path = folder / f"{name.replace('.', '/')}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    patch.syspath_prepend(str(folder))


def test_one_of_a_users_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module(tmp_path, "words_envelope", MINE, monkeypatch)
    reverse = lambda data, context: [row[::-1] for row in data]  # noqa: E731
    assert answer("words_envelope", [b"a b", b"c d e"], reverse) == ["b a", "e d c"]


def test_one_of_a_package_with_no_base_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module(tmp_path, "acme.envelopes.plain", PLAIN, monkeypatch)
    handle = wrapped(resolve_object(lambda data, context: ["y"]), "acme.envelopes.plain").handle
    assert [handle([{}], context_of(1)) for _ in range(2)] == [[{"call": n, "wrapped": "y"}] for n in (1, 2)]

    async def double(data: Any, context: Any) -> Any:
        return data

    with pytest.raises(HandlerLoadError, match="Plain has no handle_async, which a handler that is async needs"):
        wrapped(resolve_object(double), "acme.envelopes.plain")


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("absent_one", None, "service_envelope=absent_one is not one of body, json, kserve, kservev2, and there is"),
        ("needs_more", "import absent_two", "the envelope needs_more cannot be imported: No module named 'absent_two'"),
        ("without_any", "class A: pass", "service_envelope=without_any: the module defines no class with a method"),
    ],
)
def test_envelopes_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str | None, message: str
) -> None:
    if code is not None:
        module(tmp_path, name, code, monkeypatch)
    with pytest.raises(HandlerLoadError, match=message):
        wrapped(resolve_object(lambda data, context: data), name)


WORDS = """
class Words:
    def __init__(self, handle): self.inner = handle
    def handle(self, data, context): return self.inner([row["body"].split() for row in data], context)
def nothing(): pass
"""


def test_one_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_module(tmp_path, "acme_words", WORDS, envelopes={"words": "acme_words:Words"})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert answer("words", ["a b"], lambda data, context: data) == [["a", "b"]]
    assert answer("body", ["a b"], lambda data, context: data) == ["a b"], "those of MSX are there, too"


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (
            "acme_words:nothing",
            "the entry point words in the group msx.envelopes does not lead to a class with a method",
        ),
        (
            "acme_words:Absent",
            r"words = acme_words:Absent in the group msx.envelopes of acme_words 1.0 cannot be loaded",
        ),
    ],
)
def test_one_of_an_installed_package_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, message: str
) -> None:
    install_module(tmp_path, "acme_words", WORDS, envelopes={"words": point})
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(HandlerLoadError, match=message):
        wrapped(resolve_object(lambda data, context: data), "words")


class WithMethods:
    def handle(self, data: Any, context: Any) -> Any:
        return data

    @method("top")
    def best(self, data: Any, context: Any) -> Any:
        return [max(row) for row in data]


def test_methods_are_wrapped_as_handle_is() -> None:
    call = wrapped(resolve_object(WithMethods), "kserve").function_for("method:top")
    bodies = [{"body": {"instances": [[1, 3], [2]]}}, {"body": {"instances": [[4]]}}]
    assert call(bodies, context_of(2)) == [{"predictions": [3, 2]}, {"predictions": [4]}]


def test_a_method_that_streams_cannot_be_wrapped() -> None:
    class Streams(WithMethods):
        @method
        def words(self, data: Any, context: Any) -> Any:
            yield ["a"] * len(data)

    with pytest.raises(HandlerLoadError, match="packs whole replies, and the method words streams by yield"):
        wrapped(resolve_object(Streams), "kserve")
