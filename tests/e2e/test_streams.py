"""Answers in pieces: each leaves when it exists, and a broken one is never taken for whole."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until

pytestmark = pytest.mark.e2e

GATED = ["generator", "send", "coroutine"]
FAILING = ["generator", "coroutine", "item"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("streams")
    store = new_store(folder)
    models = ["stream_send", "stream_pair"]
    pack_service("stream_send", store)
    pack_service(
        "stream_generator",
        store,
        model="stream_pair",
        config="batchSize: 2\nmaxBatchDelay: 60000\nbatchingPolicy: fixed",
    )
    for function in GATED:
        pack_service("gated_stream", store, model=f"gated_{function}", function=function)
        models.append(f"gated_{function}")
    for function in FAILING:
        pack_service("stream_fails", store, model=f"fails_{function}", function=function)
        models.append(f"fails_{function}")
    with run_server(folder, "--models", *(f"{model}.mar" for model in models)) as running:
        yield running


def open_gates(folder: Path, *numbers: int) -> None:
    for number in numbers:
        (folder / str(number)).touch()


def made(folder: Path) -> list[str]:
    return (folder / "mark").read_text().split()


def until_broken(chunks: Iterator[bytes]) -> bytes:
    """Bytes before the transfer breaks; fails when it ends as if it were whole."""
    received = b""
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):  # noqa: PT012
        for chunk in chunks:
            received += chunk
    return received


@pytest.mark.parametrize("kind", GATED)
def test_a_chunk_leaves_before_the_next_is_made(server: RunningServer, tmp_path: Path, kind: str) -> None:
    order = {"count": 3, "dir": str(tmp_path)}
    with server.inference.stream("POST", f"/predictions/gated_{kind}", json=order) as reply:
        assert reply.status_code == 200
        assert reply.headers["transfer-encoding"] == "chunked"
        assert reply.headers["ts_stream_next"] == "true"
        assert "content-length" not in reply.headers
        chunks = reply.iter_raw()
        assert next(chunks) == b"1\n"
        assert made(tmp_path) == ["1"], "the handler waits for the test, so the chunk came before the next"
        open_gates(tmp_path, 2)
        assert next(chunks) == b"2\n"
        assert made(tmp_path) == ["1", "2"]
        open_gates(tmp_path, 3)
        assert b"".join(chunks) == (b"3\nend\n" if kind == "send" else b"3\n")


def test_streams_of_a_batch(server: RunningServer) -> None:
    """Each ends when its own is over."""
    with ThreadPoolExecutor(2) as pool:
        short, long = pool.map(lambda count: server.predict("stream_pair", {"count": count}), (1, 3))
    assert short.text == "1\n"
    assert long.text == "1\n2\n3\n"


@pytest.mark.parametrize("kind", FAILING)
@pytest.mark.parametrize("after", [1, 3])
def test_error_in_a_stream(server: RunningServer, kind: str, after: int) -> None:
    """No client can take the transfer for complete."""
    pids = server.worker_pids(f"fails_{kind}")
    with server.inference.stream("POST", f"/predictions/fails_{kind}", json={"after": after}) as reply:
        assert reply.status_code == 200
        received = until_broken(reply.iter_raw())
    assert received == b"".join(b"%d\n" % n for n in range(after)), "what came before the error is not lost"
    assert server.worker_pids(f"fails_{kind}") == pids
    logged = lambda: "a stream was cut: " in server.log.read_text() and "no more chunks" in server.log.read_text()  # noqa: E731
    wait_until(logged, "the log says why", server.tail)
    assert "Exception in ASGI" not in server.tail()


@pytest.mark.parametrize("kind", FAILING)
def test_error_before_the_first_chunk(server: RunningServer, kind: str) -> None:
    """A real status, as if it were not a stream."""
    chosen = server.predict(f"fails_{kind}", {"after": 0, "status": 429})
    assert (chosen.status_code, chosen.json()["message"]) == (429, "no more chunks")
    raised = server.predict(f"fails_{kind}", {"after": 0})
    assert (raised.status_code, raised.json()["message"]) == (503, "Prediction failed: RuntimeError: no more chunks")


@pytest.mark.parametrize("kind", GATED)
def test_worker_dies_in_a_stream(server: RunningServer, tmp_path: Path, kind: str) -> None:
    [pid] = server.worker_pids(f"gated_{kind}")
    order = {"count": 3, "dir": str(tmp_path)}
    with server.inference.stream("POST", f"/predictions/gated_{kind}", json=order) as reply:
        chunks = reply.iter_raw()
        assert next(chunks) == b"1\n"
        os.kill(pid, signal.SIGKILL)
        assert until_broken(chunks) == b""
    words = f"Rank 0 (pid {pid}) was ended by signal 9 (SIGKILL)"
    wait_until(lambda: words in server.log.read_text(), "the log says why", server.tail)
    open_gates(tmp_path, 2, 3)
    assert server.predict(f"gated_{kind}", order).text.startswith("1\n2\n3\n")
    assert server.worker_pids(f"gated_{kind}") != [pid]


def test_time_to_first_chunk_is_measured(server: RunningServer, tmp_path: Path) -> None:
    open_gates(tmp_path, 2, 3)
    before = server.metric("msx_first_chunk_seconds_count", model="gated_generator")
    server.predict("gated_generator", {"count": 3, "dir": str(tmp_path)})
    assert server.metric("msx_first_chunk_seconds_count", model="gated_generator") == before + 1
