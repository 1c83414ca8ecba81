"""When a stream counts as silent, and where a comment may stand in it."""

from __future__ import annotations

import pytest

from msx_core.replies.stream_heartbeat import COMMENT, EventTail, StreamHeartbeat, is_event_stream


@pytest.mark.parametrize(
    ("chunks", "between"),
    [
        ((), True),
        ((b"data: x\n\n",), True),
        ((b"data: x\r\n\r\n",), True),
        ((b"data: x\r\r",), True),
        ((b"data: x\n", b"\n"), True),
        ((b"data: x", b"\n\n"), True),
        ((b"data: x",), False),
        ((b"data: x\n",), False),
        ((b"data: x\r\n",), False),
        ((b"data: x\n\n", b"data: y\n"), False),
        ((COMMENT,), True),
    ],
)
def test_between_events(chunks: tuple[bytes, ...], between: bool) -> None:
    tail = EventTail()
    for chunk in chunks:
        tail.sent(chunk)
    assert tail.between_events is between


@pytest.mark.parametrize(
    ("headers", "events"),
    [
        ([("Content-Type", "text/event-stream; charset=utf-8")], True),
        ([("x", "y"), ("content-type", "Text/Event-Stream")], True),
        ([("content-type", "text/plain")], False),
        ([("accept", "text/event-stream")], False),
        ([], False),
    ],
)
def test_streams_of_events_say_so(headers: list[tuple[str, str]], events: bool) -> None:
    assert is_event_stream(headers) is events


class Beats:
    """A heartbeat after 15 seconds of silence, which begins at 0, and the instants at which it beat."""

    def __init__(self) -> None:
        self.now, self.at, self.open = 0.0, list[float](), set[StreamHeartbeat]()
        self.heartbeat = StreamHeartbeat(lambda: self.at.append(self.now), 15.0, 0.0, self.open)
        self.open.add(self.heartbeat)

    def look(self, *instants: float) -> None:
        for self.now in instants:
            self.heartbeat.look(self.now)


def test_it_beats_after_the_silence_and_again_after_as_long() -> None:
    beats = Beats()
    beats.look(*map(float, range(1, 46)))
    assert beats.at == [15.0, 30.0, 45.0]


def test_what_is_sent_begins_the_silence_anew() -> None:
    beats = Beats()
    beats.look(14.0)
    beats.heartbeat.sent(b"data: x\n\n")
    beats.look(15.0, 29.0)
    assert beats.at == []
    beats.look(30.0)
    assert beats.at == [30.0]


def test_it_does_not_beat_within_an_event() -> None:
    beats = Beats()
    beats.heartbeat.sent(b"data: x")
    beats.look(1.0, 16.0)
    beats.heartbeat.sent(b"\n\n")
    beats.look(17.0, 31.0, 32.0)
    assert beats.at == [32.0]


def test_closed_it_is_not_looked_at_and_does_not_beat() -> None:
    beats = Beats()
    beats.heartbeat.close()
    beats.heartbeat.close()
    beats.look(15.0)
    assert (beats.at, beats.open) == ([], set())


def test_large_chunks_are_not_kept() -> None:
    beats = Beats()
    beats.heartbeat.sent(b"data: %b\n\n" % bytes(1000))
    beats.look(1.0)
    assert len(beats.heartbeat.last) <= 4
    assert beats.heartbeat.between_events
