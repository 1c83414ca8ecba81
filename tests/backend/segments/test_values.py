"""Values of requests and replies in shared memory: what is copied, what may be written, what is given back when."""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from msx_backend.open_requests import OpenRequests
from msx_backend.segments import space
from msx_backend.segments.space import SegmentSpace
from msx_backend.segments.values import RequestValues
from msx_core.batch import Batch
from msx_core.bodies import strict
from msx_core.methods import PACKED_METHOD
from msx_core.packed import PACKED, InvalidPacked, pack, unpack
from msx_core.references import Key
from msx_protocol import FieldHead, Predict, RequestHead, encode_headers
from msx_protocol.segments import (
    OFFERED,
    SegmentMade,
    SegmentUse,
    receive_segment_message,
    send_segment_message,
)
from msx_sdk import Context, ModelInfo
from msx_sdk.request import InferenceRequest
from tests.core.recording import Sink

pytestmark = [pytest.mark.skipif(not OFFERED, reason="memfd_create(2) is Linux's"), pytest.mark.mindspore]
"""NumPy comes with MindSpore."""

SIZE = 100_000


class Stages:
    """Two workers in one process, of which the second reads what the first writes."""

    def __init__(self) -> None:
        self._first_end, first = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._second_end, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socks = [self._first_end, first, self._second_end, second]
        self.first = SegmentSpace(first, SegmentUse(1, 1 << 20, 8))
        self.second = SegmentSpace(second, SegmentUse(2, 1 << 20, 8))
        self.jobs = OpenRequests()
        self.returned: list[Key] = []
        self.jobs.share(self.second, self.returned.extend)

    def write(self, value: Any, values: RequestValues | None = None) -> tuple[bytes, list[Key]]:
        """Write the first stage's answer."""
        values = values or RequestValues(self.first, [])
        body = values.pack(value)
        lent, values.lent = values.lent, []
        while (received := receive_segment_message(self._first_end)) is not None:
            message, fd = received
            assert isinstance(message, SegmentMade)
            assert fd is not None
            send_segment_message(self._second_end, SegmentMade(message.number, message.size, 1), fd)
            os.close(fd)
        return body, lent

    def read(self, body: bytes, keys: list[Key]) -> InferenceRequest:
        """As the second stage gets it."""
        head = RequestHead(1, "r", encode_headers([]), [FieldHead("body", PACKED, len(body))], None, PACKED_METHOD)
        (request,) = self.jobs.take(Predict([head], segments={1: keys}), bytearray(body))
        request.decode(strict)
        assert request.shared is not None
        request.encoder = request.shared.pack
        return request

    def close(self) -> None:
        for sock in self._socks:
            sock.close()


@pytest.fixture
def stages() -> Iterator[Stages]:
    made = Stages()
    yield made
    made.close()


def context_of(request: InferenceRequest) -> Context:
    context = Context(ModelInfo("m"))
    context.bind(Batch([request], Sink()))
    return context


@pytest.mark.parametrize("value", [b"x" * SIZE, "array"])
def test_a_copy_that_is_on_its_way_is_not_written_over(
    value: Any, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may take a segment at any moment: `preprocess` of the next batch, say."""
    import numpy as np

    pool, taken = stages.first.pool, []
    dropped = pool.dropped

    def then_another_takes_one(number: int) -> None:
        dropped(number)
        taken.append(pool.take(SIZE))

    monkeypatch.setattr(pool, "dropped", then_another_takes_one)
    _, keys = stages.write(np.zeros(SIZE, np.uint8) if value == "array" else value)
    assert [number for _, number in keys] == [1]
    assert [one and one.number for one in taken] == [2]


def test_what_another_thread_takes_from_the_socket_is_there(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "LATE", 600.0)
    _, (key,) = stages.write(b"x" * SIZE)
    take, waits = stages.second.poll, threading.Event()
    monkeypatch.setattr(stages.second, "poll", waits.set)  # it finds the socket empty
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(stages.second.memory, key)
        assert waits.wait(30)
        take()
        assert found.result(30)[:1] == b"x"


def test_what_another_thread_has_taken_meanwhile_is_not_returned_twice(stages: Stages) -> None:
    class Emptied(deque[Key]):
        """Has lost its last one to another thread, behind whose back `bool` was asked."""

        def __bool__(self) -> bool:
            return True

    stages.second._returned = Emptied([(1, 1)])
    assert stages.second.take_returned() == [(1, 1)]


def test_an_array_is_read_where_it_was_written_and_cannot_be_changed(stages: Stages) -> None:
    import numpy as np

    array = np.arange(SIZE, dtype=np.float32).reshape(10, -1)
    body, keys = stages.write({"x": array, "small": array[0, :5]})
    assert len(body) < 200
    request = stages.read(body, keys)
    value = request.data()["body"]
    assert np.array_equal(value["x"], array)
    assert value["x"].shape == array.shape
    assert not value["x"].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        value["x"][0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        value["x"].setflags(write=True)
    writable = context_of(request).writable()["body"]["x"]
    writable[:] = 1
    assert np.array_equal(value["x"], array)


def test_an_output_is_sent_without_a_copy_and_so_is_an_input_that_is_passed_on(stages: Stages) -> None:
    import numpy as np

    values = RequestValues(stages.first, [])
    output = values.output((SIZE,), np.int32)
    output[:] = 3
    body, keys = stages.write([output[10:-10], output], values)
    assert keys == [(1, 1), (1, 1)]
    assert (len(stages.first.pool), stages.first.pool.in_use) == (1, 1)
    request = stages.read(body, [(1, 1)])
    given = request.data()["body"]
    assert [one.shape for one in given] == [(SIZE - 20,), (SIZE,)]
    passed = unpack(request.encode({"same": given[1], "new": given[0] + 1}, 200), resolve=lambda one: one)
    assert (passed["same"].key, passed["new"].key) == ((1, 1), (2, 1))
    assert request.shared is not None
    assert request.shared.lent == [(1, 1), (2, 1)]


def test_a_small_output_is_an_ordinary_array(stages: Stages) -> None:
    import numpy as np

    values = RequestValues(stages.first, [])
    assert values.output((3, 4), "float32").shape == (3, 4)
    assert len(stages.first.pool) == 0
    assert context_of(InferenceRequest("r", {})).output(5, np.uint8).shape == (5,)


def test_an_output_that_is_dropped_frees_its_segment(stages: Stages) -> None:
    import numpy as np

    output = RequestValues(stages.first, []).output((SIZE,), np.float64)
    view = output[5:]
    del output
    assert stages.first.pool.in_use == 1
    del view
    assert stages.first.pool.in_use == 0


def test_what_is_not_sent_is_not_lent(stages: Stages) -> None:
    import numpy as np

    values = RequestValues(stages.first, [])
    with pytest.raises(TypeError, match="object"):
        values.pack([np.zeros(SIZE), object()])
    assert stages.first.pool.in_use == 0
    values.pack([np.zeros(SIZE)])
    assert stages.first.pool.in_use == 1
    values.close()
    assert stages.first.pool.in_use == 0


@pytest.mark.parametrize("kept", [False, True])
def test_an_input_is_given_back_when_nothing_refers_to_it_any_more(stages: Stages, kept: bool) -> None:
    import numpy as np

    body, keys = stages.write(np.zeros(SIZE))
    request = stages.read(body, keys)
    value = request.data()["body"]
    keeper = value[7:9] if kept else None
    del value
    stages.jobs.release([request])
    assert stages.returned == ([] if kept else keys)
    assert keeper is None or keeper[0] == 0
    del keeper
    assert stages.second.take_returned() == (keys if kept else [])


def test_a_request_that_is_never_read_gives_back_what_it_was_given(stages: Stages) -> None:
    body, keys = stages.write({"x": bytes(SIZE)})
    head = RequestHead(1, "r", encode_headers([]), [FieldHead("body", PACKED, len(body))], None, PACKED_METHOD)
    requests = stages.jobs.take(Predict([head], segments={1: keys}), bytearray(body))
    stages.jobs.release(requests)
    assert stages.returned == keys


def test_large_bytes_come_as_bytes_also_deep_in_a_value(stages: Stages) -> None:
    data = os.urandom(SIZE)
    for value in (data, {"x": [data, b"small"]}, [[1, {"y": [bytearray(data)]}]]):
        body, keys = stages.write(value)
        assert len(body) < 100
        assert stages.read(body, keys).data()["body"] == value


def test_arrays_that_are_not_in_c_order_are_copied_once(stages: Stages) -> None:
    import numpy as np

    array = np.arange(SIZE, dtype=">f8").reshape(-1, 4).T
    body, keys = stages.write(array)
    assert np.array_equal(stages.read(body, keys).data()["body"], array)


def test_in_a_parallel_group_the_other_ranks_get_the_value_in_the_frame(stages: Stages) -> None:
    import numpy as np

    stages.jobs.share(stages.second, stages.returned.extend, inline=True)
    body, keys = stages.write(np.arange(SIZE))
    request = stages.read(body, keys)
    assert np.array_equal(unpack(request.parts["body"].data), np.arange(SIZE))


def test_a_client_cannot_refer_to_shared_memory(stages: Stages) -> None:
    body, keys = stages.write(bytes(SIZE))
    with pytest.raises(InvalidPacked, match="only a stage of the same model"):
        unpack(body)
    with pytest.raises(InvalidPacked, match="that the request was not given"):
        unpack(body, resolve=RequestValues(stages.second, []).resolve)
    assert keys


def test_a_reference_beyond_its_segment_is_refused(stages: Stages) -> None:
    from msx_core.references import Reference

    _, keys = stages.write(bytes(SIZE))
    values = RequestValues(stages.second, keys)
    with pytest.raises(InvalidPacked, match="bytes 100 to 200100 of a segment of 131072"):
        values.resolve(Reference(1, 1, 100, 200_000))


def test_small_values_are_as_pack_makes_them(stages: Stages) -> None:
    value = {"a": [1, 2.5, "x", None], "b": b"bytes"}
    assert RequestValues(stages.first, []).pack(value) == pack(value)
    assert len(stages.first.pool) == 0


def test_idle_segments_are_told_to_the_server(stages: Stages, tmp_path: Path) -> None:
    _, keys = stages.write(bytes(SIZE))
    stages.first.pool.returned(keys[0][1], 1)
    stages.first.tick(idle=0)
    received = receive_segment_message(stages._first_end)
    assert received is not None
    assert received[0].numbers == [1]  # type: ignore[union-attr]
