"""Requests and replies over gRPC."""

from __future__ import annotations

import time
from typing import Any

import pytest

from msx_core.packed import OneBytes, OneText, Tensor
from msx_core.service_errors import (
    Bug,
    DeadlineExceeded,
    HandlerFailed,
    RequestCancelled,
    ServiceUnavailable,
    WorkerDied,
)
from msx_net.grpc.messages import POOL
from tests.compat.mindspore_serving.family.fakes import (
    FakeServables,
    Request,
    TensorMessage,
    Values,
    ask_grpc,
    begin_grpc,
    plain,
    told,
)
from tests.phrases import worker_died


def tensor(dtype: int, shape: list[int] | None, data: bytes = b"", values: tuple[bytes, ...] = ()) -> Any:
    message = TensorMessage(dtype=dtype, data=data, bytes_val=values)
    if shape is not None:
        message.shape.dims.extend(shape)
    return message


VALUES = [
    (tensor(6, [2], b"\1\0\0\0\2\0\0\0"), ("int32", (2,), b"\1\0\0\0\2\0\0\0")),
    (tensor(6, None, b"\1\0\0\0", (b"ignored",)), ("int32", (), b"\1\0\0\0")),
    (tensor(1, [], b"\1"), ("bool", (), b"\1")),
    (tensor(10, [1, 1], b"\1\0"), ("float16", (1, 1), b"\1\0")),
    (tensor(12, [2, 0]), ("float64", (2, 0), b"")),
    (tensor(13, [], b"ignored", ("ä".encode(),)), "ä"),
    (tensor(13, [1], values=(b"",)), [""]),
    (tensor(14, [], values=(b"\xff",)), b"\xff"),
    (tensor(14, [1], values=(b"\xff",)), [b"\xff"]),
]


@pytest.mark.parametrize(("sent", "value"), VALUES)
def test_inputs_and_what_comes_back(sent: Any, value: Any) -> None:
    fake = FakeServables()
    reply = ask_grpc(fake, {"x": sent})
    assert plain(fake.seen[0]["x"]) == value
    assert not reply.error_msg
    back = reply.instances[0].items["x"]
    assert back.HasField("shape")
    assert back.dtype == sent.dtype
    assert [*back.shape.dims] == [*sent.shape.dims]
    assert (back.data or b"".join(back.bytes_val)) == (sent.data if sent.dtype < 13 else sent.bytes_val[0])


SHM = TensorMessage(dtype=6, shm_data={"memory_key": "k"})
ONE_VALUE = "Instance tensor check failed: bytes or string type shape batch size can only be 1"
TEXT_SHAPE = "Instance tensor check failed: bytes or string type input  shape can only be (1,) or empty"

BAD = [
    (tensor(13, []), ONE_VALUE),
    (tensor(14, [2], values=(b"", b"")), ONE_VALUE),
    (tensor(13, [1, 1], values=(b"",)), f"{TEXT_SHAPE}, but given shape is [1, 1]"),
    (tensor(6, [-1]), "Tensor check failed: input  shape [-1] invalid"),
    (tensor(6, [0, 2]), "Tensor check failed: input  shape [0, 2] invalid"),
    (tensor(0, []), "Tensor check failed: input data type proto::MS_UNKNOWN invalid"),
    (tensor(99, []), "Tensor check failed: input data type proto::MS_UNKNOWN invalid"),
    (tensor(6, [2], b"123"), "Tensor check failed: input data size 3 invalid"),
    (tensor(6, [1 << 62, 1 << 62]), "Tensor check failed: input data size 0 invalid"),
    (tensor(2, [1] * 33, b"1"), "Tensor check failed: input has 33 dimensions, more than 32"),
    (SHM, "Tensor check failed: shared memory is not served here: send the numbers in the message itself (data)"),
]


@pytest.mark.parametrize(("sent", "message"), BAD)
def test_tensors_that_are_refused(sent: Any, message: str) -> None:
    reply = ask_grpc(FakeServables(), {"x": sent})
    assert told(reply) == [(2, f"Instances input x check failed, detail: {message}")]
    assert not reply.instances


def test_a_text_that_is_not_utf_8() -> None:
    (error,) = told(ask_grpc(FakeServables(), {"x": tensor(13, [], values=(b"\xff",))}))
    assert error[1].startswith("Instances input x check failed, detail: Instance tensor check failed: a string is not")


def test_surplus_inputs_are_not_looked_at() -> None:
    one = tensor(6, [], b"\1\0\0\0")
    fake = FakeServables(lambda values: {"y": values["x1"]})
    assert not ask_grpc(fake, {"x1": one, "x2": one, "more": SHM}, name="add", method="add").error_msg


def test_no_instances() -> None:
    message = "Instances count of request cannot be 0, servable: any, method: same"
    assert told(ask_grpc(FakeServables())) == [(2, message)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "z",
            "The name z of the output buffers cannot be found in the output names [y] of the method, servable add, "
            "method add",
        ),
        (
            "y",
            "Output buffers in shared memory are not served here: read the outputs of the reply, servable add, "
            "method add",
        ),
    ],
)
def test_output_buffers(name: str, message: str) -> None:
    request = Request(servable_spec={"name": "add", "method_name": "add"})
    instance = request.instances.add()
    for key in ("x1", "x2"):
        instance.items[key].CopyFrom(tensor(6, [], b"\1\0\0\0"))
    instance.output_buffers[name].memory_key = "k"
    data = begin_grpc(FakeServables(), request).data
    assert data is not None
    assert message.encode() in data


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (3, (8, [], b"\3" + bytes(7))),
        (True, (1, [], b"\1")),
        (0.0, (12, [], bytes(8))),
        ([1, 2], (8, [2], b"\1" + bytes(7) + b"\2" + bytes(7))),
        ([[True], [False]], (1, [2, 1], b"\1\0")),
        (Tensor("uint8", (2,), b"\1\2"), (3, [2], b"\1\2")),
    ],
)
def test_outputs(value: Any, sent: Any) -> None:
    reply = ask_grpc(FakeServables(lambda values: {"y": value}), {"x": tensor(14, [], values=(b"",))})
    found = reply.instances[0].items["y"]
    assert (found.dtype, [*found.shape.dims], found.data) == sent


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("ä", (13, [], "ä".encode())),
        (b"\xff", (14, [], b"\xff")),
        (OneText(), (13, [1], b"")),
        (OneBytes(), (14, [1], b"")),
    ],
)
def test_texts(value: Any, sent: Any) -> None:
    reply = ask_grpc(FakeServables(lambda values: {"y": value}), {"x": tensor(14, [], values=(b"",))})
    found = reply.instances[0].items["y"]
    assert (found.dtype, [*found.shape.dims], *found.bytes_val) == sent


@pytest.mark.parametrize("value", [None, {}, ["a"], [1, 2.0], [1, [2]], [[1], [2, 3]], [], [1 << 63]])
def test_outputs_without_a_tensor(value: Any) -> None:
    reply = ask_grpc(FakeServables(lambda values: {"y": value}), {"x": tensor(14, [], values=(b"",))})
    assert told(reply) == [(3, f"Get illegal result data with type {type(value)}")]


def fails(values: Values) -> Values:
    if values["x"] != "fine":
        raise HandlerFailed(400, str(values["x"]), "3")
    return values


@pytest.mark.parametrize(
    ("texts", "errors", "count"),
    [
        (["fine", "fine"], [], 2),
        (["fine", "bad"], [(0, ""), (3, "bad")], 2),
        (["bad", "bad"], [(3, "bad")], 0),
        (["bad", "worse"], [(3, "bad"), (3, "worse")], 2),
    ],
)
def test_errors_of_instances(texts: list[str], errors: list[tuple[int, str]], count: int) -> None:
    reply = ask_grpc(FakeServables(fails), *({"x": tensor(13, [], values=(text.encode(),))} for text in texts))
    assert told(reply) == errors
    assert len(reply.instances) == count
    assert [len(one.items) for one in reply.instances] == [int(text == "fine") for text in texts][:count]


@pytest.mark.parametrize(
    ("status", "code", "number"),
    [(400, "5", 5), (400, "", 2), (503, "", 1), (400, "own", 2)],
)
def test_numbers_of_errors(status: int, code: str, number: int) -> None:
    def call(values: Values) -> Values:
        raise HandlerFailed(status, "bad", code)

    reply = ask_grpc(FakeServables(call), {"x": tensor(14, [], values=(b"",))})
    assert told(reply) == [(number, "bad")]


def one_request() -> Any:
    request = Request(servable_spec={"name": "any", "method_name": "same"})
    request.instances.add().items["x"].CopyFrom(tensor(14, [], values=(b"",)))
    return request


def test_no_worker() -> None:
    fake = FakeServables()
    fake.refusal = ServiceUnavailable("No worker.")
    reply = ask_grpc(fake, {"x": tensor(14, [], values=(b"",))})
    assert told(reply) == [(5, "Request servable(any) method(same) , servable is not available")]


def test_a_worker_that_died() -> None:
    fake = FakeServables()
    fake.refusal = WorkerDied("It ended.")
    ((number, text),) = told(ask_grpc(fake, {"x": tensor(14, [], values=(b"",))}))
    assert (number, text) == (4, worker_died("It ended."))


@pytest.mark.parametrize("service", ["MSMaster", "MSWorker", "MSDistributedWorker", "MSAgent"])
def test_services_between_its_processes_are_gone(service: str) -> None:
    with pytest.raises(KeyError):
        POOL.FindServiceByName(f"mindspore.serving.proto.{service}")


def test_a_client_that_leaves_cancels_its_instances() -> None:
    fake = FakeServables()
    fake.held = []
    reply = begin_grpc(fake, one_request())
    assert reply.job is not None
    reply.job.cancel()
    assert [job.cancelled for job in fake.held] == [True]
    assert (reply.data, reply.error) == (None, None)


def test_a_deadline_of_the_client() -> None:
    """It is per request; gRPC has a status for it."""
    fake = FakeServables()
    fake.held = []
    past = time.monotonic()
    reply = begin_grpc(fake, one_request(), past)
    assert fake.held[0].deadline == past
    fake.held[0].cancel(DeadlineExceeded("Too late."))
    assert isinstance(reply.error, DeadlineExceeded)
    reply = begin_grpc(fake, one_request(), past)
    fake.held[1].cancel(RequestCancelled())
    assert reply.data is not None


def test_a_bug_is_told() -> None:
    def call(values: Values) -> Values:
        return values

    fake = FakeServables(call)
    fake.refusal = RuntimeError("boom")  # type: ignore[assignment]
    assert isinstance(begin_grpc(fake, one_request()).error, Bug)
