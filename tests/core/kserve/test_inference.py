from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

from msx_core.kserve.inference import announced  # noqa: E402
from msx_sdk import Context, HandlerLoadError  # noqa: E402
from msx_sdk.kserve import Signature, TensorMeta  # noqa: E402
from tests.core.kserve.messages import binary, opened, parted, request, served, tensor  # noqa: E402

X = np.array([1.5, 2.5], np.float32)
WRONG = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1, 2]}]}
GOOD = {"id": "7", "inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1.5]}]}


def mirror(data: Any, context: Context) -> list[Any]:
    """Each request's inputs as its outputs."""
    return [{one["name"]: one["data"] for one in item["body"]["inputs"]} for item in data]


def test_bytes_in_and_out() -> None:
    (reply,) = served(mirror, request(*binary(tensor("x", X), id="7", parameters={"binary_data_output": True})))
    head, raw = opened(reply)
    assert (head["id"], head["model_name"], head["model_version"]) == ("7", "local", "1.0")
    assert raw == {"x": X.tobytes()}


def test_a_wrong_request_fails_alone() -> None:
    seen = []

    def counts(data: Any, context: Context) -> list[Any]:
        seen.append(len(data))
        return mirror(data, context)

    wrong, good = served(counts, request(WRONG, id="a"), request(GOOD, id="b"))
    assert wrong.failure is not None
    assert (wrong.status, wrong.failure.message) == (400, "input 'x': shape [1] takes 1 values, 'data' has 2")
    assert opened(good)[0]["id"] == "7"
    assert seen == [1]


def test_an_async_handler() -> None:
    async def handle(data: Any, context: Context) -> list[Any]:
        return mirror(data, context)

    wrong, good = served(handle, request(WRONG, id="a"), request(GOOD, id="b"))
    assert wrong.status == 400
    assert opened(good)[0]["outputs"][0]["data"] == [1.5]


def test_a_handler_that_changed_the_request_gets_it_anew() -> None:
    def spoils(data: Any, context: Context) -> list[Any]:
        names = [item["body"]["inputs"].pop()["name"] for item in data]
        if len(data) > 1:
            raise ValueError("not together")
        return [{"y": names} for _ in data]

    assert [opened(reply)[0]["outputs"][0]["data"] for reply in served(spoils, request(GOOD), request(GOOD, id="b"))]


def test_every_piece_of_a_stream_is_a_reply() -> None:
    def streams(data: Any, context: Context) -> Any:
        yield [[1]]
        yield [[2]]
        return [""]

    (reply,) = served(streams, request(GOOD))
    assert [parted(chunk)[0]["outputs"][0]["data"] for chunk in reply.chunks if chunk] == [[1], [2]]
    assert reply.complete


def test_under_an_error_status_the_words_are_the_handlers() -> None:
    def refuses(data: Any, context: Context) -> list[Any]:
        context.set_response_status(409)
        return ["not now"]

    (reply,) = served(refuses, request(GOOD))
    assert (reply.status, reply.body) == (409, b"not now")


def test_what_a_handler_announces() -> None:
    spec = TensorMeta("x", "FP32", (-1, 3))
    assert announced(lambda: Signature((spec,))) == Signature((spec,))
    assert announced(lambda: {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]}) == Signature((spec,))
    assert announced(None) == Signature()
    with pytest.raises(HandlerLoadError, match=r"tensor_signature\(\) did not return a msx_sdk.kserve.Signature"):
        announced(lambda: {"inputs": [{"name": "x"}]})


@pytest.mark.parametrize("spec", [TensorMeta("x", "FLOAT", (1,)), TensorMeta("x", "FP32", (-2, 3))])
def test_an_announcement_that_no_request_could_meet(spec: TensorMeta) -> None:
    with pytest.raises(HandlerLoadError, match=r"tensor_signature\(\): input 'x' has datatype"):
        announced(lambda: Signature((spec,)))
    assert announced(lambda: Signature((spec,), enforced=False)).inputs == (spec,)


class Mirror:
    """A handler that announces its inputs."""

    signature = Signature((TensorMeta("x", "FP32", (-1, 3)),))

    def tensor_signature(self) -> Signature:
        return self.signature

    def handle(self, data: Any, context: Context) -> list[Any]:
        return mirror(data, context)


def one(**changes: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3], **changes}]}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (one(name="y"), "missing input 'x' and unknown input 'y'; this model takes x (FP32 [-1, 3])"),
        (one(datatype="INT8"), "input 'x': datatype 'INT8', but the model takes FP32"),
        (one(shape=[3]), "input 'x': shape [3] does not fit the model's [-1, 3] (-1 is any size)"),
        (one(shape=[-1, 4]), "input 'x': 'shape' must be a list of sizes that fits [-1, 3]; it is [-1, 4]"),
        (one(data=[1, "2", 3]), "input 'x': FP32 takes numbers, and 'data' has a text"),
        (tensor("x", np.ones((1, 3), np.int8)), "input 'x': datatype 'INT8', but the model takes FP32"),
        (tensor("x", np.ones(3, np.float32)), "input 'x': shape [3] does not fit the model's [-1, 3] (-1 is any size)"),
        (tensor("y", np.ones((1, 3), np.float32)), "missing input 'x' and unknown input 'y'; this model takes x (FP32"),
    ],
)
def test_what_is_announced_is_enforced(asked: Any, message: str) -> None:
    wrong = request(asked, id="a") if isinstance(asked, dict) else request(*binary(asked), id="a")
    refused, good = served(Mirror(), wrong, request(one(), id="b"))
    assert refused.failure is not None
    assert (refused.status, refused.failure.message[: len(message)]) == (400, message)
    assert opened(good)[0]["outputs"][0]["data"] == [1, 2, 3]


def test_what_is_only_announced_is_not() -> None:
    class Loose(Mirror):
        signature = Signature(Mirror.signature.inputs, enforced=False)

    (reply,) = served(Loose(), request(one(name="y")))
    assert opened(reply)[0]["outputs"][0]["name"] == "y"


def test_one_value_has_an_axis() -> None:
    def answers(data: Any, context: Context) -> list[Any]:
        return [{"outputs": [{"name": "y", "shape": [], "datatype": "FP32", "data": [5]}]}, {"y": np.float32(5)}]

    asked = one(shape=[3])
    for reply in served(answers, request(asked), request(asked, id="b")):
        assert opened(reply)[0]["outputs"] == [{"name": "y", "shape": [1], "datatype": "FP32", "data": [5]}]
