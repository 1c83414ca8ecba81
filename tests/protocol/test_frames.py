from __future__ import annotations

import random
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_protocol import (
    LARGE,
    MAX_HEAD,
    PREFIX,
    Broken,
    CallDone,
    Cancel,
    Chunk,
    Chunks,
    CompleteReplies,
    Credit,
    Drain,
    Dropped,
    Failed,
    FieldHead,
    FrameReader,
    Joined,
    Lent,
    Load,
    Loaded,
    LoadFailed,
    LoadProgress,
    MetricSample,
    Ping,
    Plan,
    PlanCall,
    PlanEnd,
    PlanMessage,
    PlanStep,
    Pong,
    Predict,
    PredictRows,
    ProtocolError,
    RequestHead,
    Returned,
    ToFrontend,
    ToWorker,
    ToWorkerControl,
    encode_frame,
    encode_frame_parts,
    encode_headers,
)
from tests.backend.fake_torch import ONE_GIVEN
from tests.backend.harness import load_message
from tests.frames import fed

MESSAGES: list[Any] = [
    load_message(Path("/models/m"), "h.py", config={"a": [1, {"b": None}]}, device_id=3, continuous=True),
    load_message(Path("/models/m"), "h.py", torch_devices=[ONE_GIVEN]),
    Predict(
        [
            RequestHead(
                1, "id", encode_headers([("X-A", "é")]), [FieldHead("body", None, 3), FieldHead("f", "a/b", 0)], 2.5
            )
        ]
    ),
    Predict([], joins=True),
    Drain(),
    Ping(1),
    Cancel([1, 2**40]),
    Credit(2**40, 1 << 33),
    LoadProgress("warming up"),
    Loaded(True, 0.5, {"generate": True}, {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]}, True),
    LoadFailed("ValueError: x", "Traceback …", False),
    Chunk(1, False, 200, "OK", [("content-type", "a/b")]),
    Chunk(1, True),
    CompleteReplies([1, 2**40], [3, 0], 200, "OK", [("content-type", "a/b")]),
    Chunks([1, 2], [3, 0]),
    Failed(1, 503, "Prediction failed", "Traceback …"),
    Dropped(1),
    Broken("no call succeeds"),
    Joined(2),
    Lent(2**40, [(1, 2)]),
    Returned([(1, 2), (3, 4)]),
    CallDone(3, [1, 2], 4, {"all_reduce": 5}, "ValueError: x"),
    PlanCall(3, [RequestHead(1, "id", encode_headers([]), [], None)], [1], True),
    PlanStep(3, True, [1]),
    PlanEnd(),
    PlanMessage(4),
    Pong(1, 2, 0.25, [MetricSample("x", "counter", "Count", float("inf"), [("a", "b")])]),
]
ANY = ToWorker | ToWorkerControl | ToFrontend | Pong | Plan


def test_every_message_is_tried_here() -> None:
    assert {type(message) for message in MESSAGES} == set(get_args(ANY))


def test_tags_are_unique() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(ANY)]
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
@pytest.mark.parametrize("body", [b"", b"\x00payload"])
def test_round_trip(message: Any, body: bytes) -> None:
    assert fed(FrameReader[Any](ANY), encode_frame(message, body)) == [(message, body)]


def test_gathered_bodies_make_the_same_frame() -> None:
    parts = encode_frame_parts(Drain(), [b"ab", bytearray(b"c"), b""])
    assert b"".join(parts) == encode_frame(Drain(), b"abc")


def test_byte_by_byte() -> None:
    reader = FrameReader[Any](ANY)
    stream = b"".join(encode_frame(message, b"body") for message in MESSAGES)
    frames = [frame for n in range(len(stream)) for frame in fed(reader, stream[n : n + 1])]
    assert frames == [(message, b"body") for message in MESSAGES]


@given(st.lists(st.tuples(st.sampled_from(MESSAGES), st.binary(max_size=200))), st.randoms(use_true_random=False))
def test_any_split(frames: list[tuple[Any, bytes]], choice: random.Random) -> None:
    reader = FrameReader[Any](ANY)
    stream = b"".join(encode_frame(message, body) for message, body in frames)
    seen = []
    while stream:
        size = choice.randint(1, len(stream))
        seen += fed(reader, memoryview(stream)[:size])
        stream = stream[size:]
    assert seen == frames


def test_a_large_body() -> None:
    body = random.Random(1).randbytes(32 << 20)
    frame = encode_frame(Chunk(1, True), body)
    reader = FrameReader[Any](ToFrontend)
    frames = [found for n in range(0, len(frame), 1 << 18) for found in fed(reader, frame[n : n + (1 << 18)])]
    assert frames == [(Chunk(1, True), body)]


@given(st.binary(min_size=8, max_size=100))
def test_garbage_is_a_protocol_error_or_a_frame_to_come(data: bytes) -> None:
    try:
        frames = fed(FrameReader[Any](ANY), data)
    except ProtocolError:
        return
    assert len(frames) * PREFIX.size <= len(data)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (PREFIX.pack(MAX_HEAD + 1, 0), "claims a head of 67108865 bytes"),
        (PREFIX.pack(3, 0) + b"\xc1\xc1\xc1", "not a message of this protocol"),
        (encode_frame(Dropped(1)), "not a message of this protocol"),
        (PREFIX.pack(2, 0) + b"\x91\x63", "not a message of this protocol"),
    ],
    ids=["huge head", "no MessagePack", "for the other side", "unknown tag"],
)
def test_a_broken_stream_says_so(stream: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        fed(FrameReader[Any](ToWorker), stream)


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        (PREFIX.pack(100_001, 0), "claims a head of 100001 bytes; at most 100000 are allowed"),
        (PREFIX.pack(1, 100_002), "claims a body of 100002 bytes; at most 100001 are allowed"),
    ],
)
def test_a_reader_may_have_limits_of_its_own(prefix: bytes, message: str) -> None:
    """They count before there is a buffer for the frame."""
    with pytest.raises(ProtocolError, match=message):
        fed(FrameReader[Any](ToWorker, 100_000, 100_001), prefix)


def test_a_frame_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_protocol.frames.MAX_BODY", 10)
    with pytest.raises(ProtocolError, match="too large"):
        encode_frame(Drain(), b"x" * 11)
    with pytest.raises(ProtocolError, match="too large"):
        encode_frame_parts(Drain(), [b"x" * 6, b"x" * 6])


def test_load_says_everything_by_name() -> None:
    with pytest.raises(TypeError):
        Load("m")  # type: ignore[call-arg]


def test_a_large_body_is_received_in_place() -> None:
    """It is the receiver's own: nothing else holds it, so that it can grow."""
    frame = encode_frame(Chunk(1, True), bytes(LARGE)) + encode_frame(Dropped(2))
    reader, frames = FrameReader[Any](ToFrontend), list[tuple[Any, bytearray]]()
    while frame:
        with memoryview(reader.space()) as space:
            count = min(len(space), len(frame), 1000)
            space[:count] = frame[:count]
        frames += reader.received(count)
        frame = frame[count:]
    (_, body), (dropped, _) = frames
    body += b"x"
    assert body == bytes(LARGE) + b"x"
    assert dropped == Dropped(2)


@pytest.mark.parametrize("body", [0, 1, LARGE - 1, LARGE, 1 << 17])
def test_a_head_that_is_larger_than_the_buffer(body: int) -> None:
    failed = Failed(1, 503, "x" * 200_000, "")
    reader = FrameReader[Any](ToFrontend)
    stream = (encode_frame(failed, b"y" * body) + encode_frame(Dropped(2))) * 2
    frames = [frame for n in range(0, len(stream), 70_001) for frame in fed(reader, stream[n : n + 70_001])]
    assert frames == [(failed, b"y" * body), (Dropped(2), b"")] * 2


def test_rows_are_read_as_the_messages_that_they_stand_for() -> None:
    headers = encode_headers([("X-A", "é")])
    rows = PredictRows([(1, "id", headers, [("body", None, 3), ("f", "a/b", 0)], 2.5, "generate")], True, 4)
    fields = [FieldHead("body", None, 3), FieldHead("f", "a/b", 0)]
    ((message, _),) = fed(FrameReader[Any](ToWorker), encode_frame(rows, b"abc"))
    assert message == Predict([RequestHead(1, "id", headers, fields, 2.5, "generate")], True, 4)
