"""Hypothesis plays a client that keeps to the rules, and the owners of its streams, in any order."""

from __future__ import annotations

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.frames import frame, rst_stream, window_update
from msx_net.http2.limits import Limits
from tests.net.http2.model import LARGEST, Model
from tests.net.http2.peer import OK, REQUEST, STATUS, Peer

MOST_STREAMS = 5
SIZES = st.one_of(st.integers(0, 50), st.integers(0, 16_000))
WHICH = st.integers(0, 4)
"""One of the streams that a rule may choose from."""


class Conversation(RuleBasedStateMachine):
    """`sent` counts the bytes of answers that owners gave, `consumed` those of requests that they took."""

    max_refused_body = 0

    @initialize()
    def connect(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.limits = Limits(
            max_streams=MOST_STREAMS,
            stream_window=65_535,
            connection_window=100_000,
            max_held=1 << 30,
            max_refused_body=self.max_refused_body,
        )
        self.model = Model(self.limits)
        self.sent: dict[int, int] = {}
        self.consumed: dict[int, int] = {}
        self._begun: set[int] = set()
        self.loop.run_until_complete(self._connect())

    async def _connect(self) -> None:
        self.peer = Peer(self.limits)
        await self.peer.received()

    async def _say(self, *parts: bytes) -> None:
        self.peer.send(*parts)
        await self._hear()

    async def _hear(self) -> None:
        for heard in await self.peer.received():
            self.model.hear(heard)

    def _run(self, *parts: bytes) -> None:
        self.loop.run_until_complete(self._say(*parts))

    def _owned(self, which: int) -> int:
        """A stream whose owner has not ended its answer; 0 if there is none."""
        numbers = [
            number for number, owner in self.peer.owners.items() if not owner.stream.finished and not owner.reasons
        ]
        return numbers[which % len(numbers)] if numbers else 0

    # -- the client --

    @precondition(lambda self: self.peer.protocol.streams < MOST_STREAMS)
    @rule(ended=st.booleans(), split=st.booleans(), field=st.integers(0, 3))
    def open(self, ended: bool, split: bool, field: int) -> None:
        number = self.model.begin(ended)
        fields = [*REQUEST, (b"x-any", b"%d" % field)]
        block = self.peer.encoder.encode(fields)
        self.sent[number] = self.consumed[number] = 0
        self._run(frames.header_frames(number, block, end=ended, max_size=7 if split else 1 << 14))
        owner = self.peer.owners[number]
        assert (owner.headers, owner.over) == (fields, ended)

    @precondition(lambda self: self.model.open)
    @rule(which=WHICH, size=SIZES, padding=st.one_of(st.none(), st.integers(0, 255)), end=st.booleans())
    def data(self, which: int, size: int, padding: int | None, end: bool) -> None:
        number = self.model.open[which % len(self.model.open)]
        pad = 0 if padding is None else 1 + padding
        size = min(size, self.model.may_send - pad, self.model.streams[number].may_send - pad)
        if size < 0:
            return
        payload = bytes(size) if padding is None else bytes([padding]) + bytes(size + padding)
        self.model.send(number, size, pad)
        self.model.streams[number].ended = end
        self._run(
            frame(frames.DATA, (frames.END_STREAM if end else 0) | (frames.PADDED if pad else 0), number, payload)
        )

    @precondition(lambda self: self.model.open)
    @rule(which=WHICH)
    def trailers(self, which: int) -> None:
        number = self.model.open[which % len(self.model.open)]
        self.model.streams[number].ended = True
        block = self.peer.encoder.encode([(b"x-checksum", b"5")])
        self._run(frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, number, block))

    @precondition(lambda self: self.model.answering or self.model.open)
    @rule(which=WHICH)
    def cancel(self, which: int) -> None:
        numbers = sorted({*self.model.answering, *self.model.open})
        number = numbers[which % len(numbers)]
        stream = self.model.streams[number]
        stream.ended = stream.gone = True
        self._run(rst_stream(number, ErrorCode.CANCEL))

    @rule(which=WHICH, size=st.one_of(st.integers(1, 100), st.integers(1, 100_000)))
    def window(self, which: int, size: int) -> None:
        numbers = [0, *self.model.answering]
        number = numbers[which % len(numbers)]
        if number:
            self.model.streams[number].takes += size
        else:
            self.model.takes += size
        self._run(window_update(number, size))

    @rule(window=st.sampled_from([0, 1, 100, 65_535, 1 << 20]))
    def settings(self, window: int) -> None:
        if all(
            self.model.streams[number].takes + window - self.model.initial <= LARGEST for number in self.model.answering
        ):
            self.model.resize(window)
            self._run(frame(frames.SETTINGS, 0, 0, b"\0\4" + window.to_bytes(4, "big")))

    @rule(payload=st.binary(min_size=8, max_size=8), ack=st.booleans())
    def ping(self, payload: bytes, ack: bool) -> None:
        if not ack:
            self.model.pongs.append(payload)
        self._run(frame(frames.PING, int(ack), 0, payload))

    @rule(kind=st.integers(0x10, 0xFF), flags=st.integers(0, 0xFF), payload=st.binary(max_size=20))
    def what_is_ignored(self, kind: int, flags: int, payload: bytes) -> None:
        self._run(frame(kind, flags, 1, payload), frame(frames.PRIORITY, 0, 9, bytes(5)))

    @rule()
    def socket_is_full(self) -> None:
        self.peer.protocol.pause_writing()

    @rule(seconds=st.floats(0.1, 1.5))
    def time_passes(self, seconds: float) -> None:
        """Streams are not blocked for so long in one conversation, and bodies are in their grace."""

        async def look() -> None:
            self.peer.look(seconds / 10)
            await self._hear()

        self.loop.run_until_complete(look())

    @rule()
    def socket_has_room(self) -> None:
        async def resume() -> None:
            self.peer.protocol.resume_writing()
            await self._hear()

        self.loop.run_until_complete(resume())

    # -- the owners --

    @rule(which=WHICH, size=SIZES, end=st.sampled_from(["", "data", "trailers", "reset"]))
    def answer(self, which: int, size: int, end: str) -> None:
        if number := self._owned(which):
            self.loop.run_until_complete(self._answer(number, size, end))

    async def _answer(self, number: int, size: int, end: str) -> None:
        stream = self.peer.owners[number].stream
        if end == "reset":
            stream.reset(ErrorCode.CANCEL)
        else:
            if number not in self._begun:
                stream.send_headers(OK)
                self._begun.add(number)
            stream.send_data(bytes(size), end=end == "data")
            self.sent[number] += size
            if end == "trailers":
                stream.send_trailers(STATUS)
        await self._hear()

    @rule(which=WHICH, part=st.integers(1, 4))
    def consume(self, which: int, part: int) -> None:
        if number := self._owned(which):
            owner = self.peer.owners[number]
            size = (len(owner.body) - self.consumed[number]) // part
            self.consumed[number] += size

            async def take() -> None:
                owner.stream.consumed(size)
                await self._hear()

            self.loop.run_until_complete(take())

    # -- what always holds --

    @invariant()
    def both_sides_agree(self) -> None:
        protocol, model = self.peer.protocol, self.model
        flow = protocol._streams.flow
        assert flow.receive_window == model.may_send
        assert flow.send_window == model.takes
        open_streams = protocol._streams.open
        for number, stream in open_streams.items():
            assert stream.receive_window == model.streams[number].may_send
            assert model.streams[number].gone or stream.send_window == model.streams[number].takes
        assert set(model.answering) == {number for number in open_streams if not model.streams[number].gone}
        held = sum(
            len(self.peer.owners[number].body) - self.consumed[number]
            for number, stream in open_streams.items()
            if not stream.dropped_until
        )
        assert flow.held == held

    @invariant()
    def owners_know(self) -> None:
        for number, owner in self.peer.owners.items():
            stream = self.model.streams[number]
            assert len(owner.body) <= stream.sent
            assert len(owner.reasons) <= 1
            if number in self.model.answering and not owner.stream.finished:
                assert (len(owner.body), owner.over) == (stream.sent, stream.ended)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.run_until_complete(self._finish())
            self.loop.close()

    async def _finish(self) -> None:
        """With room for everything all answers end, and nothing is left."""
        self.peer.protocol.resume_writing()
        self.model.takes += 1 << 30
        await self._say(window_update(0, 1 << 30))
        for number in self.model.answering:
            self.model.streams[number].takes += 1 << 29
            await self._say(window_update(number, 1 << 29))
        while number := self._owned(0):
            await self._answer(number, 10, "trailers")
        for number in self.model.open:
            self.model.streams[number].ended = True
            await self._say(frame(frames.DATA, frames.END_STREAM, number))
        for number, stream in self.model.streams.items():
            reset = bool(self.peer.owners[number].reasons)
            assert stream.gone or reset
        assert (self.peer.protocol.streams, self.peer.protocol.held) == (0, 0)
        assert (self.model.acks, self.model.pongs) == (0, [])
        self.peer.protocol.connection_lost(None)
        assert not self.peer.transport.aborted


TestConversation = Conversation.TestCase


class ReadingOn(Conversation):
    """Conversation whose body behind an early answer is read and dropped, up to a bound."""

    max_refused_body = 20_000


TestReadingOn = ReadingOn.TestCase
TestConversation.settings = TestReadingOn.settings = settings(stateful_step_count=30)
