"""Prompts of megabytes to a real language model, beside a neighbour's stream."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil
import pytest

from tests.adversary.watch import CALM
from tests.e2e.llama import EXAMPLE, few_graphs, pack_llama
from tests.e2e.server import RunningServer, client_of, new_store, run_server, wait_until
from tests.e2e.test_llm_apis import leave

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.mindspore]

MODEL = "llama"
LOAD = 240.0
"""Seconds, on a busy machine."""
SIZE = 6_000_000
"""Bytes; `max_request_size` is 6,553,500."""
ASCII, NOT_ASCII, ONE_PIECE = "word " * (SIZE // 5), "é " * (SIZE // 3), "x" * SIZE
COMPLETIONS = "/v1/completions"
CONTEXT = "255 tokens (maxInputTokens)"
ROUTES = {
    COMPLETIONS: ("prompt", CONTEXT),
    "/generate": ("inputs", CONTEXT),
    "/tokenize": ("prompt", "131072 tokens"),
    f"/v2/models/{MODEL}/generate": ("text_input", CONTEXT),
}
"""The member that holds the text, and the limit that the refusal names."""
MOST_LEFT = 150 << 20
"""Bytes that the worker and its children may have more afterwards."""
NEIGHBOURS = {"model": MODEL, "prompt": "Exceptions are", "max_tokens": 200, "temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("llama")
    pack_llama(new_store(folder), MODEL, few_graphs((EXAMPLE / "model-config.yaml").read_text()))
    with run_server(folder, "--models", f"{MODEL}.mar", ready=False) as running:
        running.wait_ready(LOAD)
        yield running


class Stream(threading.Thread):
    """A neighbour who has one text after the other generated, the same one each time."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(daemon=True)
        self._address = server.info["inference"]
        self._stopped = threading.Event()
        with client_of(self._address) as client:
            self._right = _streamed(client)
        self.wrong: list[str] = []
        self.whole = 0

    def run(self) -> None:
        with client_of(self._address) as client:
            while not self._stopped.is_set():
                self._one(client)

    def _one(self, client: httpx.Client) -> None:
        try:
            text = _streamed(client)
        except (httpx.HTTPError, ValueError, LookupError) as error:
            self.wrong.append(repr(error))
            return
        self.whole += 1
        self.wrong += [] if text == self._right else [text]

    def stop(self) -> None:
        self._stopped.set()
        self.join(CALM)


def _streamed(client: httpx.Client) -> str:
    """The text of a stream, and how it ended."""
    with client.stream("POST", COMPLETIONS, json={**NEIGHBOURS, "stream": True}) as reply:
        events = [line.removeprefix("data: ") for line in reply.iter_lines() if line]
    assert reply.status_code == 200, events
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    return "".join([*(one["text"] for one in choices), str(choices[-1]["finish_reason"]), events[-1]])


@contextmanager
def beside_a_stream(server: RunningServer) -> Iterator[None]:
    """Raises AssertionError unless the stream stayed right, the worker lives, and its memory is given back."""
    (pid,) = server.worker_pids(MODEL)
    stream = Stream(server)
    before = memory(pid)
    stream.start()
    try:
        yield
        whole = stream.whole
        wait_until(lambda: stream.whole > whole + 1 or stream.wrong, "one more text came whole", server.tail)
    finally:
        stream.stop()
    assert stream.wrong == []
    assert server.worker_pids(MODEL) == [pid]
    calm = lambda: memory(pid) - before < MOST_LEFT  # noqa: E731
    wait_until(calm, "memory is given back", lambda: f"{before >> 20} MiB, then {memory(pid) >> 20}", CALM)


def memory(pid: int) -> int:
    """Resident bytes of the worker and all below it."""
    worker = psutil.Process(pid)
    return sum(_resident(one) for one in [worker, *worker.children(recursive=True)])


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


@pytest.mark.parametrize("text", [ASCII, NOT_ASCII], ids=["ASCII", "not ASCII"])
def test_they_are_refused(server: RunningServer, text: str) -> None:
    with beside_a_stream(server):
        for path, (member, limit) in ROUTES.items():
            body = json.dumps({"model": MODEL, member: text}, ensure_ascii=False).encode()
            reply = server.inference.post(path, content=body)
            assert reply.status_code in (400, 413, 422), reply.text[:1000]
            assert limit in reply.text


def test_clients_that_leave(server: RunningServer) -> None:
    """A text without spaces is tokenized whole, for nobody."""
    with beside_a_stream(server):
        (pid,) = server.worker_pids(MODEL)
        clients = [leave(server, path, {"model": MODEL, member: ONE_PIECE}) for path, (member, _) in ROUTES.items()]
        wait_until(lambda: psutil.Process(pid).children(), "a process tokenizes", server.tail)
        for client in clients:
            client.close()
