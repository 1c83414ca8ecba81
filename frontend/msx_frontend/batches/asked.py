"""The request that makes a batch."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from msx_core.service_errors import BadRequest

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LONGEST_WINDOW = 7 * 86_400
"""Seconds."""
MOST_METADATA = 16


class OutputExpiry(msgspec.Struct):
    """When the files of a batch expire."""

    anchor: Literal["created_at"]
    seconds: Annotated[int, Meta(ge=3600, le=2_592_000)]


class BatchRequest(msgspec.Struct):
    input_file_id: Annotated[str, Meta(max_length=100)]
    endpoint: Annotated[str, Meta(max_length=500)]
    completion_window: Annotated[str, Meta(max_length=10)] = "24h"
    metadata: dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]] | None = None
    output_expires_after: OutputExpiry | None = None


def batch_request(value: dict[str, Any]) -> BatchRequest:
    """Raises BadRequest."""
    try:
        asked = msgspec.convert(value, BatchRequest)
    except msgspec.ValidationError as error:
        raise BadRequest(f"{_path(error)}: {str(error).partition(' - at ')[0]}.") from None
    if len(asked.metadata or {}) > MOST_METADATA:
        raise BadRequest(f"metadata: at most {MOST_METADATA} pairs.")
    window_seconds(asked.completion_window)
    return asked


def window_seconds(window: str) -> int:
    """Raises BadRequest."""
    found = re.fullmatch(r"([0-9]{1,6})([smhd])", window)
    seconds = int(found[1]) * SECONDS[found[2]] if found else 0
    if not 0 < seconds <= LONGEST_WINDOW:
        raise BadRequest(f"completion_window: expected 24h, or a time up to 7d such as 90m or 2d, not {window!r}.")
    return seconds


def _path(error: msgspec.ValidationError) -> str:
    """The member that is wrong, where the error names one."""
    found = re.search(r"`\$\.([^`]+)`", str(error)) or re.search(r"required field `([^`]+)`", str(error))
    return found[1] if found else "The request"
