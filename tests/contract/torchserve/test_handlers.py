"""Handlers of TorchServe are found, called and streamed as they are, from archives in every format.

contract#handlers
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.contract.torchserve.handlers import archive_of
from tests.contract.torchserve.setup import Setup
from tests.contract.torchserve.shapes import assert_error
from tests.e2e.server import RunningServer
from tests.torch_archiver import FORMATS

pytestmark = pytest.mark.e2e

STATEFUL = "handler:\n  limit: 40\n"
PLAIN = ("surface", "module_level", "only_class", "context_probe")


def prepare(store: Path) -> None:
    for service in PLAIN:
        archive_of(service, store)
    archive_of("module_level", store, name="no_suffix", handler="module_level")
    archive_of("module_level", store, name="named_function", handler="module_level:entry_point")
    archive_of("only_class", store, name="no_function", handler="only_class.py:handle")
    archive_of("many", store, config="asyncCommunication: true\n")
    archive_of("streaming", store, name="pair", config="batchSize: 2\nmaxBatchDelay: 60000\nbatchingPolicy: fixed\n")
    for archive_format in FORMATS:
        archive_of("streaming", store, name=f"streaming-{archive_format}", archive_format=archive_format)
        name = f"stateful-{archive_format}"
        archive_of("stateful", store, name=name, archive_format=archive_format, config=STATEFUL)


SERVER = Setup(prepare=prepare, load=("all",))


def text_of(reply: httpx.Response) -> str:
    assert reply.status_code == 200, reply.text
    return reply.text


def test_the_whole_package_is_there(server: RunningServer) -> None:
    """Without torch being imported: that is left to those who load a torch model."""
    told = server.predict("surface").json()
    assert told == {"version": "0.12.0", "missing": [], "torch": False, "of_service": True, "older_name": True}


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        ("module_level", "module_level: x"),
        ("no_suffix", "no_suffix: x"),
        ("named_function", "the function that was named"),
        ("only_class", "one class"),
        ("no_function", "one class"),
    ],
)
def test_how_a_handler_is_found(server: RunningServer, model: str, answer: str) -> None:
    """`mod.py`, `mod`, `mod:func`; a function `handle`, else the one class of its own with initialize and handle.

    A function that is named and not there means the class, too.
    """
    assert text_of(server.predict(model, b"x")) == answer


def refusal(server: RunningServer, archive: Path) -> str:
    """Why a model cannot be loaded."""
    reply = server.register(archive)
    name = archive.name.partition(".")[0]
    message = f"Failed to start workers for model {name} version: 1.0"
    assert_error(reply, 500, "InternalServerException", message, exact=False)
    archive.unlink()
    return str(reply.json()["message"])


def test_two_classes_are_one_too_many(server: RunningServer) -> None:
    assert "classes found: One, Two" in refusal(server, archive_of("two_classes", server.store))


def test_a_handler_that_is_nowhere(server: RunningServer) -> None:
    assert "handler 'nowhere'" in refusal(server, archive_of("only_class", server.store, name="n", handler="nowhere"))


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        ("OnPippy", ["PiPPy", "PipelineHandler", "docs/parallel-models.md"]),
        ("OnDeepSpeed", ["DeepSpeed", "TensorParallelHandler", "docs/parallel-models.md"]),
    ],
)
def test_what_is_different_here_says_so(server: RunningServer, cls: str, words: list[str]) -> None:
    """The bases can be imported; constructing one names our own handler."""
    message = refusal(server, archive_of("parallel", server.store, name=cls, handler=f"parallel.py:{cls}"))
    assert all(word in message for word in words), message


def test_the_vllm_handler_by_its_name(server: RunningServer) -> None:
    """An ImportError of the handler's name leads to `ts.torch_handler.<name>`."""
    archive = archive_of("only_class", server.store, name="vllm", handler="vllm_handler")
    assert "needs vLLM in the worker's environment, which has no module vllm" in refusal(server, archive)


@pytest.mark.parametrize("archive_format", FORMATS)
def test_a_streaming_handler(server: RunningServer, archive_format: str) -> None:
    with server.inference.stream("POST", f"/predictions/streaming-{archive_format}", content=b"to be or") as reply:
        assert reply.status_code == 200
        assert reply.headers["ts_stream_next"] == "true"
        assert reply.headers["transfer-encoding"] == "chunked"
        assert b"".join(reply.iter_raw()) == b"to\nbe\nor\n3 words"


def test_a_streaming_handler_with_a_batch(server: RunningServer) -> None:
    with ThreadPoolExecutor(2) as pool:
        long, short = pool.map(lambda text: text_of(server.predict("pair", text)), (b"to be or", b"not"))
    assert (long, short) == ("to\nbe\nor\n3 words", "not\n1 words")


@pytest.mark.parametrize("archive_format", FORMATS)
def test_a_stateful_handler(server: RunningServer, archive_format: str) -> None:
    """Per request: the sequence's headers reach it, and its state lives from call to call."""

    def add(number: str, sequence: str, **headers: str) -> httpx.Response:
        headers = {"ts_request_sequence_id": sequence, **headers}
        return server.predict(f"stateful-{archive_format}", number.encode(), headers=headers)

    assert text_of(add("1", "a", ts_request_sequence_start="true")) == "1"
    assert text_of(add("10", "b", ts_request_sequence_start="true")) == "10"
    reply = add("2", "a")
    assert text_of(reply) == "3"
    assert reply.headers["ts_request_sequence_id"] == "a"
    assert (bad := add("x", "a")).status_code == 400
    assert bad.text == "x is not a number"
    assert text_of(add("90", "a", ts_request_sequence_end="true")) == "40", "the limit of model-config.yaml"
    assert text_of(add("1", "a")) == "1", "the sequence has ended"


def test_an_async_handler(server: RunningServer) -> None:
    """One request a call, many at once, each with a context of its own; what a call sets on it stays in the call."""
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda text: text_of(server.predict("many", text)), (b"a1", b"a2"))
    assert (first, second) == ("a1 of 1, a1, of the load", "a2 of 1, a2, of the load")
