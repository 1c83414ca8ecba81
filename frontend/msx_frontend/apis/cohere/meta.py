"""The member `meta` of replies."""

from typing import Any


def meta_of(version: str, tokens: int | None = None) -> dict[str, Any]:
    meta: dict[str, Any] = {"api_version": {"version": version}}
    return meta if tokens is None else {**meta, "billed_units": {"input_tokens": tokens}}
