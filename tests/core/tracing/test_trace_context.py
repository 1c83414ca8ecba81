from __future__ import annotations

import pytest

from msx_core.tracing.trace_context import PARENT_LENGTH, TraceContext, new_trace, parsed

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_a_header_there_and_back() -> None:
    header = f"00-{TRACE}-{SPAN}-01"
    found = parsed(header, "a=b")
    assert found == TraceContext(TRACE, SPAN, True, "a=b")
    assert found.header == header


@pytest.mark.parametrize(
    ("header", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f" 00-{TRACE}-{SPAN}-01 ", True),
        (f"01-{TRACE}-{SPAN}-01-what.comes.later", True),
    ],
)
def test_flags_and_later_versions(header: str, sampled: bool) -> None:
    found = parsed(header)
    assert found is not None
    assert found.sampled is sampled


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        f"00-{TRACE}-{SPAN}",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-0x",
        f"00-{TRACE}0-{SPAN}-01",
    ],
)
def test_what_is_not_a_header_begins_a_trace(header: str) -> None:
    assert parsed(header) is None


def test_a_state_that_is_too_long_is_left_out() -> None:
    found = parsed(f"00-{TRACE}-{SPAN}-01", "a" * 513)
    assert found is not None
    assert found.state == ""


def test_a_child_is_another_span_of_the_trace() -> None:
    whole = new_trace()
    child = whole.child()
    assert child.trace == whole.trace
    assert child.span != whole.span
    assert child.sampled
    assert (len(child.trace), len(child.span)) == (32, 16)
    assert len(child.header) == PARENT_LENGTH
