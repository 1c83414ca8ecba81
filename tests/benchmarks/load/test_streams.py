"""The client of benchmarks/load/streams.py, beside servers that do what they should not."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Callable, Iterator

import click
import pytest

from benchmarks.handlers import chunks, chunks_async
from benchmarks.load.client import Address
from benchmarks.load.streams import END, EVENT, FILES, MARK, StreamLoad, allow_files, read_streams
from benchmarks.servers.bare_streams import CHUNK, HEAD, answer
from benchmarks.throughput.stream import PROGRAM

Serve = Callable[[Callable[[list[socket.socket]], None], int], Address]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Has a function answer so many connections."""
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def start(work: Callable[[list[socket.socket]], None], streams: int) -> Address:
            def run() -> None:
                connections = [listener.accept()[0] for _ in range(streams)]
                work(connections)
                for connection in connections:
                    connection.close()

            threads.append(threading.Thread(target=run))
            threads[-1].start()
            return Address("127.0.0.1", listener.getsockname()[1])

        yield start
        for thread in threads:
            thread.join()


def says(*parts: bytes) -> Callable[[list[socket.socket]], None]:
    def work(connections: list[socket.socket]) -> None:
        for connection in connections:
            connection.recv(1 << 16)
            for part in parts:
                connection.sendall(part)

    return work


@pytest.mark.parametrize("at_once", [1, 3, 7])
def test_every_event_of_every_stream_is_counted(serve: Serve, at_once: int) -> None:
    address = serve(lambda connections: answer(connections, 7, at_once), 5)
    reader = read_streams(address, "/", 5, 7)
    assert list(reader.seen.values()) == [7] * 5
    assert len(reader.firsts) == 5
    assert reader.seconds >= max(reader.firsts.values()) > 0


def test_a_rate_is_that_of_events(serve: Serve) -> None:
    load = StreamLoad(7)
    result = load.run(serve(lambda connections: answer(connections, 7, 1), 5), "/", connections=5, seconds=1e-9)
    assert result.requests == 35
    assert 0 < result.p50 <= result.p99 <= result.micros
    assert len(load.cores) == 1


def test_an_end_in_two_pieces_is_an_end(serve: Serve) -> None:
    assert read_streams(serve(says(HEAD + CHUNK, END[:2], END[2:]), 1), "/", 1, 1).seen.popitem()[1] == 1


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([b"HTTP/1.1 503 Service Unavailable\r\n\r\nfull"], "refused: .*full"),
        ([HEAD, CHUNK], "cut after 1 of 2 events"),
        ([HEAD, CHUNK * 2], "cut after 2 of 2 events"),
        ([HEAD, CHUNK * 3 + END], "3 events came instead of 2"),
        ([HEAD, CHUNK + END], "cut after 1 of 2 events"),
    ],
)
def test_a_stream_that_is_not_what_was_ordered_is_an_error(serve: Serve, parts: list[bytes], reason: str) -> None:
    with pytest.raises(click.ClickException, match=reason):
        read_streams(serve(says(*parts), 1), "/", 1, 2)


def test_a_stream_that_says_nothing_is_an_error(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.load.streams.LIMIT", 0.01)
    left = threading.Event()

    def work(connections: list[socket.socket]) -> None:
        says(HEAD)(connections)
        left.wait(60)

    address = serve(work, 1)
    try:
        with pytest.raises(click.ClickException, match="1 streams said nothing"):
            read_streams(address, "/", 1, 2)
    finally:
        left.set()


def test_both_servers_send_the_same_bytes() -> None:
    assert chunks.EVENT.encode() == chunks_async.EVENT.encode() == EVENT
    assert f'"{EVENT.decode().removeprefix("data: ").strip()}"' in PROGRAM  # mosec adds the rest
    assert EVENT.count(MARK) == 1


def test_more_open_files_are_allowed_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: given.append(limits))
    allow_files(1024 - FILES)
    assert given == []
    allow_files(4096 - FILES)
    assert given == [(4096, 4096)]
    with pytest.raises(click.ClickException, match="4000 streams need 4256 open files, and a process may have 4096"):
        allow_files(4000)
