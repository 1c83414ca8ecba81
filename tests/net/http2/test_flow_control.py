"""Without a connection: what the windows allow, when they are given back, and what is refused."""

from __future__ import annotations

import pytest

from msx_net.http2.errors import ConnectionFault, ErrorCode, StreamFault
from msx_net.http2.flow_control import FlowControl, StreamWindows
from msx_net.http2.limits import DEFAULT_WINDOW, LARGEST_WINDOW, Limits

LIMITS = Limits(stream_window=100_000, connection_window=200_000, max_held=150_000)


class Windows(StreamWindows):
    """A stream without anything else."""

    def __init__(self, stream_id: int, flow: FlowControl) -> None:
        self.id = stream_id
        self.send_window = flow.initial_send_window
        self.receive_window = self.allowed = flow.limits.stream_window
        self.unannounced = self.held = 0


@pytest.fixture
def flow() -> FlowControl:
    return FlowControl(LIMITS)


def test_a_frame_of_an_answer_counts_for_its_stream_and_for_the_connection(flow: FlowControl) -> None:
    one, other = Windows(1, flow), Windows(3, flow)
    flow.send(one, 1_000)
    flow.send(other, 10)
    assert (one.send_window, other.send_window) == (DEFAULT_WINDOW - 1_000, DEFAULT_WINDOW - 10)
    assert (flow.send_window, flow.sent_frames) == (DEFAULT_WINDOW - 1_010, 2)
    flow.widen(1_010)
    flow.widen_stream(one, 5)
    assert (flow.send_window, one.send_window) == (DEFAULT_WINDOW, DEFAULT_WINDOW - 995)


def test_windows_of_the_client_have_a_largest_size(flow: FlowControl) -> None:
    stream = Windows(1, flow)
    room = LARGEST_WINDOW - DEFAULT_WINDOW
    flow.widen(room)
    flow.widen_stream(stream, room)
    with pytest.raises(ConnectionFault) as of_connection:
        flow.widen(1)
    with pytest.raises(StreamFault) as of_stream:
        flow.widen_stream(stream, 1)
    assert of_connection.value.code is of_stream.value.code is ErrorCode.FLOW_CONTROL_ERROR


def test_windows_are_given_back_by_halves(flow: FlowControl) -> None:
    stream = Windows(1, flow)
    assert flow.receive(99_999) == 0
    assert flow.receive(1) == 100_000
    assert flow.receive_window == 200_000
    flow.receive_for(stream, 60_000)
    assert flow.grant(stream, 49_999) == 0
    assert flow.grant(stream, 10_001) == 60_000
    assert (stream.receive_window, stream.unannounced) == (100_000, 0)


def test_more_than_a_window_is_refused(flow: FlowControl) -> None:
    stream = Windows(1, flow)
    flow.receive_for(stream, 100_000)
    with pytest.raises(StreamFault, match="Stream 1 sent more than its window"):
        flow.receive_for(stream, 1)
    with pytest.raises(ConnectionFault, match="More was sent than the connection's window"):
        flow.receive(200_001)


def test_what_the_streams_of_a_connection_hold_is_bounded_together(flow: FlowControl) -> None:
    one, other = Windows(1, flow), Windows(3, flow)
    flow.hold(one, 100_000)
    flow.hold(other, 50_000)
    with pytest.raises(StreamFault, match="hold more than 150000 bytes: send fewer at once"):
        flow.hold(other, 1)
    assert flow.release(other, 50_001) == 50_001
    assert flow.release(other, 7) == 0  # nothing is held of it any more
    assert flow.held == one.held == 100_000
