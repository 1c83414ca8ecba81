"""Requests of a frontend that has handed its worker group over."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.service_errors import HandlerFailed, WorkerDied
from msx_frontend.workers.guest_job import GuestJob, GuestSink
from msx_protocol import Chunk, Dropped, Failed, FrameReader, ToFrontend
from tests.frames import fed


class Relay:
    """Connection to the other frontend, as that one reads it."""

    def __init__(self) -> None:
        self.data = b""
        self.job = GuestJob(7, "predict", GuestSink(7, self._write))

    def _write(self, *parts: bytes) -> None:
        self.data += b"".join(parts)

    @property
    def messages(self) -> list[tuple[Any, bytes]]:
        return [(message, bytes(body)) for message, body in fed(FrameReader[Any](ToFrontend), self.data)]


@pytest.fixture
def relay() -> Relay:
    return Relay()


def test_a_whole_reply_is_one_frame(relay: Relay) -> None:
    relay.job.answer(201, "Made", [("a", "b")], b"data")
    assert relay.messages == [(Chunk(7, True, 201, "Made", [("a", "b")]), b"data")]


def test_a_stream_arrives_as_the_worker_sends_it(relay: Relay) -> None:
    relay.job.sink.start(200, "", [])
    relay.job.sink.chunk(b"1")
    relay.job.finish(200)
    assert relay.messages == [(Chunk(7, False, 200), b""), (Chunk(7, False), b"1"), (Chunk(7, True), b"")]


def test_errors_keep_their_status_and_code(relay: Relay) -> None:
    relay.job.fail(HandlerFailed(422, "No.", "bad"))
    assert relay.messages == [(Failed(7, 422, "No.", "", "bad"), b"")]


def test_the_end_of_the_worker_is_an_error(relay: Relay) -> None:
    relay.job.fail(error := WorkerDied("It died."))
    assert relay.messages == [(Failed(7, error.status, error.message, ""), b"")]


def test_what_the_worker_drops_is_over_there_too(relay: Relay) -> None:
    relay.job.drop()
    relay.job.drop()
    assert relay.messages == [(Dropped(7), b"")]
    assert relay.job.done


def test_its_credit_is_the_other_frontends_to_give(relay: Relay) -> None:
    relay.job.credit = object()  # type: ignore[assignment]
    assert relay.job.credit is None
