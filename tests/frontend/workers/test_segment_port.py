"""Segments between real processes, and the server's part: what is passed on, and what is given back."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.shared_value import SharedValue
from msx_frontend.workers.local_streams import segment_socket
from msx_frontend.workers.segments.allowance import READS, SegmentAllowance, SegmentLimits, SegmentSocket, next_owner
from msx_frontend.workers.segments.port import SegmentPort
from msx_protocol.segments import OFFERED, SegmentMade, send_segment_message
from tests.descriptors import open_descriptors
from tests.forked import ForkingPopen
from tests.loops import run

pytestmark = pytest.mark.skipif(not OFFERED, reason="memfd_create(2) is Linux's")

SIZE = 200_000
SEGMENT = 1 << 18
"""Bytes of the segment in which a value of SIZE stands."""


class Process:
    """A worker without a handler, and the server's port to it."""

    def __init__(self, limits: SegmentLimits) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.port = SegmentPort(SegmentSocket(ours, limits, next_owner()))
        arguments = [theirs.fileno(), self.port.owner, *limits]
        command = [sys.executable, "-m", "tests.frontend.workers.segment_worker", *map(str, arguments)]
        self.process = ForkingPopen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[theirs.fileno()]
        )
        theirs.close()

    def ask(self, *command: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def lend(self, *arguments: Any) -> tuple[str, SharedValue]:
        body, keys = self.ask("lend", *arguments)
        return body, self.port.value([(owner, number) for owner, number in keys], {})

    def read(self, body: str, value: SharedValue, number: int = 1) -> Any:
        keys = self.port.give([value], number)
        found, returned = self.ask("read", body, keys)
        self.port.returned([(owner, number) for owner, number in returned])
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.port.close()


@asynccontextmanager
async def processes(count: int = 2, size: int = 1 << 24, number: int = 8) -> AsyncIterator[list[Process]]:
    """At their end no descriptor is left of them."""
    before = _descriptors()
    made = [Process(SegmentLimits(size, number)) for _ in range(count)]
    try:
        yield made
    finally:
        for one in made:
            one.kill()
    assert _descriptors() <= before


def _descriptors() -> set[tuple[str, str]]:
    """Descriptors of segments, in this process."""
    return {one for one in open_descriptors() if "memfd:msx-segment" in one[1]}


def test_a_value_is_read_where_it_was_written_and_its_segment_is_used_again() -> None:
    async def test() -> None:
        async with processes() as (owner, reader):
            for text in "abc":
                body, value = owner.lend(SIZE, 1, text)
                assert len(base64.b64decode(body)) < 100
                assert reader.read(body, value) == {"0": [SIZE, text]}
                assert owner.port.lent == 1  # its holder may still give it to others
                value.close()
                assert (owner.port.lent, reader.port.reading) == (0, 0)
            assert owner.ask("state") == {"segments": 1, "size": SEGMENT, "in_use": 0, "maps": 1}
            assert reader.ask("state")["maps"] == 1

    run(test())


def test_two_readers_have_the_same_segment_and_the_last_one_frees_it() -> None:
    async def test() -> None:
        async with processes(3) as (owner, one, other):
            body, value = owner.lend(SIZE)
            for reader in (one, other):
                reader.port.give([value], 1)
            value.close()
            for reader in (one, other):
                assert owner.ask("state")["in_use"] == 1
                reader.port.returned([(owner.port.owner, 1)])
            assert owner.ask("state")["in_use"] == 0
            assert body

    run(test())


@pytest.mark.parametrize("killed", ["owner", "reader"])
def test_after_a_kill_nothing_is_left_of_either_side(killed: str) -> None:
    async def test() -> None:
        others = _descriptors()
        async with processes(3) as (owner, reader, other):
            body, value = owner.lend(SIZE)
            reader.port.give([value], 1)
            if killed == "reader":
                reader.kill()
                value.close()
                assert owner.ask("state")["in_use"] == 0
                return
            owner.kill()
            assert reader.read(body, value) == {"0": [SIZE, "a"]}  # what was computed before is not lost
            assert other.read(body, value) == {"0": [SIZE, "a"]}
            value.close()
            reader.port.returned([(owner.port.owner, 1)])
            assert not _descriptors() - others
            assert [one.ask("state")["maps"] for one in (reader, other)] == [0, 0]

    run(test())


def test_what_is_idle_goes_back_to_the_system_in_all_processes() -> None:
    async def test() -> None:
        others = _descriptors()
        async with processes() as (owner, reader):
            body, value = owner.lend(SIZE, 3)
            assert len(reader.read(body, value)) == 3
            value.close()
            owner.ask("tick", 60)
            assert owner.ask("state")["maps"] == 3
            owner.ask("tick", 0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert [one.ask("state")["maps"] for one in (owner, reader)] == [0, 0]
            assert (owner.port.size, _descriptors() - others) == (0, set())

    run(test())


def test_at_the_bound_values_travel_in_frames() -> None:
    async def test() -> None:
        async with processes(2, SEGMENT) as (owner, reader):
            _, first = owner.lend(SIZE)
            body, second = owner.lend(SIZE)
            assert len(base64.b64decode(body)) > SIZE
            assert second.segments == ()
            assert reader.read(body, second) == {"0": [SIZE, "a"]}
            first.close()

    run(test())


def test_a_reference_that_a_request_was_not_given_is_refused() -> None:
    async def test() -> None:
        async with processes() as (owner, reader):
            body, value = owner.lend(SIZE)
            assert reader.read(body, value)
            refused, _ = reader.ask("read", body, [])
            assert refused == "InvalidPacked: it refers to shared memory that the request was not given"
            value.close()

    run(test())


def test_a_reader_without_descriptors_says_so_and_gets_the_segment_again_later() -> None:
    async def test() -> None:
        async with processes() as (owner, reader):
            reader.ask("few_descriptors")
            body, value = owner.lend(SIZE)
            refused = reader.read(body, value)
            assert refused.startswith("PredictionError: The worker could not take a value of another stage: its limit")
            assert "(ulimit -n)" in refused
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert reader.read(body, value) == refused  # not that it is gone
            value.close()
            assert owner.ask("state")["in_use"] == 0

    run(test())


def test_what_did_not_reach_the_server_fails_with_the_limit_and_is_not_used_again() -> None:
    async def test() -> None:
        async with processes() as (owner, _):
            owner.port._limits = SegmentLimits(0, -1)  # the worker makes more than it was granted
            with pytest.raises(ServiceUnavailable, match=r"limit of open files \(\d+\) is reached"):
                owner.lend(SIZE)
            assert owner.ask("state") == {"segments": 0, "size": 0, "in_use": 0, "maps": 0}

    run(test())


def test_a_segment_that_may_be_resized_is_refused_by_its_reader() -> None:
    async def test() -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        hostile = SegmentPort(SegmentSocket(ours, SegmentLimits(1 << 20, 8), 1))
        async with processes(2) as (owner, reader):
            body, value = owner.lend(SIZE)
            value.close()
            fd = os.memfd_create("msx-segment-open", os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, SEGMENT)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
            send_segment_message(theirs, SegmentMade(1, SEGMENT), fd)
            os.close(fd)
            value = hostile.value([(hostile.owner, 1)], {})
            packed = base64.b64decode(body).replace(
                owner.port.owner.to_bytes(4, "little"), hostile.owner.to_bytes(4, "little"), 1
            )
            refused = reader.read(base64.b64encode(packed).decode(), value)
            assert refused == "PredictionError: A segment of shared memory was refused: it may be resized."
            value.close()
            hostile.close()
            theirs.close()

    run(test())


def test_what_a_worker_keeps_after_its_reply_is_noticed() -> None:
    async def test() -> None:
        async with processes() as (owner, reader):
            _, value = owner.lend(SIZE)
            reader.port.give([value], 7)
            value.close()
            assert reader.port.kept({7}, 100.0) == 0
            assert reader.port.kept(set(), 200.0) == 0
            assert reader.port.kept(set(), 230.0) == 30

    run(test())


def test_a_worker_that_may_write_none_reads_those_of_others() -> None:
    async def test() -> None:
        async with processes() as (owner, _):
            reader = Process(READS)
            body, value = owner.lend(SIZE)
            assert reader.read(body, value) == {"0": [SIZE, "a"]}
            own, nothing = reader.lend(SIZE)
            assert len(base64.b64decode(own)) > SIZE
            assert nothing.segments == ()
            value.close()
            reader.kill()

    run(test())


def test_another_frontend_goes_on_with_the_socket_and_without_the_segments() -> None:
    async def test() -> None:
        others = _descriptors()
        async with processes() as (owner, reader):
            body, value = owner.lend(SIZE)
            assert reader.read(body, value) == {"0": [SIZE, "a"]}
            assert (owner.port.at_rest, reader.port.at_rest) == (False, True)
            value.close()
            assert owner.port.at_rest
            for one in (owner, reader):
                one.port.forget_all()
            assert [one.ask("state")["maps"] for one in (owner, reader)] == [0, 0]
            for one in (owner, reader):
                assert one.port.unsent == 0
                one.port = SegmentPort(SegmentSocket(one.port.leave(), SegmentLimits(1 << 24, 8), one.port.owner))
            assert not _descriptors() - others
            body, value = owner.lend(SIZE)
            assert reader.read(body, value) == {"0": [SIZE, "a"]}
            value.close()

    run(test())


def test_a_value_may_be_asked_for_in_a_frame() -> None:
    async def test() -> None:
        async with processes() as (owner, reader):
            body, keys = owner.ask("lend_in_frames", SIZE)
            assert (len(base64.b64decode(body)) > SIZE, keys) == (True, [])
            assert reader.read(body, SharedValue([])) == {"0": [SIZE, "a"]}
            assert owner.ask("state")["segments"] == 0

    run(test())


def test_each_worker_of_a_stage_has_a_socket() -> None:
    with ExitStack() as ours, ExitStack() as theirs:
        allowance = SegmentAllowance(1)
        wanted = [SegmentLimits(1 << 20, 8), SegmentLimits(1 << 20, 8), READS]
        offered = [segment_socket(ours, theirs, one, allowance) for one in wanted]
        assert [one and one[0].limits for one in offered] == [SegmentLimits(1 << 20, 1), READS, READS]
        assert segment_socket(ours, theirs, None, allowance) is None
    assert allowance.left == 1


def test_the_server_grants_descriptors_while_there_are_any() -> None:
    allowance = SegmentAllowance(10)
    first, second, third = (allowance.take(SegmentLimits(1 << 20, 8)) for _ in range(3))
    assert [first.number, second, third] == [5, SegmentLimits(1 << 20, 4), SegmentLimits(1 << 20, 1)]
    assert allowance.take(SegmentLimits(1 << 20, 8)) == SegmentLimits(0, 0)
    allowance.put_back(first)
    assert allowance.take(SegmentLimits(0, 8)).number == 0
    assert allowance.left == 5
    allowance.go_on_with(SegmentLimits(1 << 20, 8))  # a worker that a frontend with more descriptors has started
    assert allowance.take(SegmentLimits(1 << 20, 8)) == READS
