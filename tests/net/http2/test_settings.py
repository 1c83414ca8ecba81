from __future__ import annotations

from collections.abc import Callable

import pytest

from msx_net.http2.errors import ConnectionFault, ErrorCode
from msx_net.http2.frames import HEAD_SIZE
from msx_net.http2.limits import Limits
from msx_net.http2.settings import parse_settings, settings_frame


def entry(name: int, value: int) -> bytes:
    return name.to_bytes(2, "big") + value.to_bytes(4, "big")


def test_ours_say_the_limits() -> None:
    limits = Limits(max_streams=7, stream_window=70_000, max_header_list=9_000, max_frame_size=20_000)
    said = parse_settings(settings_frame(limits)[HEAD_SIZE:])
    assert said == {3: 7, 4: 70_000, 5: 20_000, 6: 9_000}


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"12345", ErrorCode.FRAME_SIZE_ERROR),
        (entry(2, 2), ErrorCode.PROTOCOL_ERROR),
        (entry(4, 1 << 31), ErrorCode.FLOW_CONTROL_ERROR),
        (entry(5, 16_383), ErrorCode.PROTOCOL_ERROR),
        (entry(5, 1 << 24), ErrorCode.PROTOCOL_ERROR),
        (entry(99, 5) * 33, ErrorCode.ENHANCE_YOUR_CALM),
    ],
)
def test_what_settings_cannot_say(payload: bytes, code: ErrorCode) -> None:
    with pytest.raises(ConnectionFault) as caught:
        parse_settings(payload)
    assert caught.value.code == code


def test_unknown_settings_are_ignored() -> None:
    assert parse_settings(entry(99, 5) + entry(2, 0)) == {99: 5, 2: 0}


def test_the_last_value_counts() -> None:
    assert parse_settings(entry(4, 5) + entry(4, 6)) == {4: 6}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Limits(stream_window=65_534),
        lambda: Limits(connection_window=1 << 31),
        lambda: Limits(max_frame_size=100),
    ],
)
def test_limits_that_http2_does_not_have(make: Callable[[], Limits]) -> None:
    with pytest.raises(ValueError, match="of HTTP/2 has"):
        make()
