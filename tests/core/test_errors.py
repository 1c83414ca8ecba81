from __future__ import annotations

import pickle
from http import HTTPStatus
from typing import Any

import pytest

from msx_core.failures import RequestFailure, is_out_of_memory, summary
from msx_sdk.errors import HandlerLoadError, InvalidInput, PredictionError


def test_a_handler_chooses_status_and_message() -> None:
    assert RequestFailure.of(PredictionError(429, "later, please")) == RequestFailure(429, "later, please")
    assert RequestFailure.of(InvalidInput("field x: expected a number")) == RequestFailure(
        400, "field x: expected a number"
    )


@pytest.mark.parametrize("status", [0, 200, 399, 600])
def test_a_prediction_error_is_an_http_error(status: int) -> None:
    with pytest.raises(ValueError, match=f"status {status} is not an HTTP error status"):
        PredictionError(status, "no")


def test_other_exceptions_are_503_with_their_name_text_and_traceback() -> None:
    try:
        raise KeyError("weights")
    except KeyError as error:
        failure = RequestFailure.of(error)
    assert (failure.status, failure.message) == (503, "Prediction failed: KeyError: 'weights'")
    assert "test_errors.py" in failure.traceback


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("NPU Out of Memory: tried to allocate 2 GiB"),
        RuntimeError("Device(id:0) memory isn't enough and alloc failed, kernel name: MatMul-op1, alloc size: 1024B."),
        RuntimeError("Memory not enough: current free memory size[5] is smaller than required size[7]."),
        RuntimeError("Allocate dynamic workspace memory failed, alloc size:1024B"),
        RuntimeError("Alloc device mem failed, alloc size : 1024"),
        RuntimeError("Malloc mem block failed, is enable eager free : 0"),
        RuntimeError("Memory pool not enough, graph: 3"),
        RuntimeError("Memory malloc failed."),
        RuntimeError("EL0004: Failed to allocate memory."),
        RuntimeError("Allocate memory failed, maybe device memory(device id: 0) is insufficient"),
        RuntimeError("Malloc device memory failed, size[1024]"),
        ValueError("CUDA error: no kernel image"),
    ],
)
def test_memory_that_ran_out_is_507(error: Exception) -> None:
    assert is_out_of_memory(error)
    assert RequestFailure.of(error).status == 507
    assert RequestFailure.of(error).message.startswith("Out of resources: ")


def test_a_load_that_names_cuda_has_not_run_out_of_memory() -> None:
    assert not is_out_of_memory(HandlerLoadError("a longer context may cause a CUDA array out-of-bounds error"))
    assert is_out_of_memory(HandlerLoadError("vLLM's engine did not start: CUDA out of memory"))


def test_a_summary_is_one_line() -> None:
    assert summary(ValueError("two\nlines")) == "ValueError: two lines"
    assert summary(ValueError()) == "ValueError"
    assert summary(SystemExit(3)) == "the handler called sys.exit(3)"


def test_a_summary_leaves_out_what_mindspore_appends() -> None:
    line = "-" * 52
    message = (
        f"For 'Add', x must be a number.\n\n{line}\n- C++ Call Stack: (For framework developers)\n{line}\nops.cc:3"
    )
    failure = RequestFailure.of(ValueError(message))
    assert failure.message == "Prediction failed: ValueError: For 'Add', x must be a number."
    assert "ops.cc:3" in failure.traceback
    assert summary(OSError("cannot compile.\n\nAt:\n  parser.py(1101): parse\n")) == "OSError: cannot compile."
    assert RequestFailure.of(RuntimeError(f"failed\n{line}\n- Ascend Error Message:\nNPU out of memory")).status == 507


def test_an_error_that_cannot_be_shown_is_still_answered() -> None:
    class Shy(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    failure = RequestFailure.of(Shy())
    assert (failure.status, failure.message) == (503, "Prediction failed: Shy: (its text cannot be shown)")


def test_a_subclass_that_forgets_its_parent_is_still_answered() -> None:
    class Forgetful(PredictionError):
        def __init__(self) -> None:
            pass

    assert RequestFailure.of(Forgetful()) == RequestFailure(503, "")


def test_odd_types_become_what_the_wire_can_carry() -> None:
    text: Any = {"reason": "dict"}
    failure = RequestFailure.of(PredictionError(HTTPStatus.CONFLICT, text))
    assert type(failure.status) is int
    assert failure == RequestFailure(409, "{'reason': 'dict'}")


@pytest.mark.parametrize("error", [PredictionError(418, "teapot"), InvalidInput("field x")])
def test_errors_survive_a_process_pool(error: PredictionError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (copy.status, copy.message) == (error.status, error.message)


def test_an_error_that_quotes_a_whole_input_is_shortened() -> None:
    text = "begin" + "x" * 50_000_000 + "the end"
    failure = RequestFailure.of(ValueError(text))
    assert failure.message.startswith("Prediction failed: ValueError: begin")
    assert failure.message.endswith("the end")
    assert "(50000012 characters)" in failure.message
    assert len(failure.message) < 2_100
    assert len(failure.traceback) < 33_000
    assert "ValueError: begin" in failure.traceback


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot identify image file <_io.BytesIO object at 0x7f3a5c0d1e90>", "image file <_io.BytesIO object>"),
        (
            "<function f at 0x7F3A>, <bound method A.b of <m.A object at 0x1f>>",
            "<function f>, <bound method A.b of <m.A",
        ),
        ('<code object f at 0x7f3a, file "h.py", line 1>', '<code object f, file "h.py", line 1>'),
        ("a byte at 0xff is wrong", "a byte at 0xff is wrong"),
    ],
)
def test_no_answer_shows_where_an_object_is(text: str, shown: str) -> None:
    for error in (ValueError(text), InvalidInput(text), PredictionError(503, text), MemoryError(text)):
        message = RequestFailure.of(error).message
        assert shown in message
        assert "at 0x7" not in message
    assert "0x" not in summary(SystemExit(object()))
