"""The headers that assign requests of a stateful model to a sequence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

VARIABLES = ("TS_REQUEST_SEQUENCE_ID", "TS_REQUEST_SEQUENCE_START", "TS_REQUEST_SEQUENCE_END")
"""The environment variables by which TorchServe tells its workers the names of the three headers."""


class SequenceKeys(NamedTuple):
    """The names of the headers that hold a request's sequence, and that say where a sequence begins and ends."""

    id: str = "ts_request_sequence_id"
    start: str = "ts_request_sequence_start"
    end: str = "ts_request_sequence_end"

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> SequenceKeys:
        return cls(*(env.get(name) or usual for name, usual in zip(VARIABLES, cls(), strict=True)))

    def to_env(self) -> dict[str, str]:
        return dict(zip(VARIABLES, self, strict=True))
