"""One batch as the store knows it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from msx_frontend.store.records import Record

KIND = "batch"

State = Literal["validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"]
ENDED = frozenset({"failed", "completed", "expired", "cancelled"})
TIMES = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
"""States whose times OpenAI's object has, as `{state}_at`."""


class Fault(msgspec.Struct, frozen=True):
    """Why a batch failed. `line` counts from 1; None where no line is wrong."""

    code: str
    message: str
    line: int | None = None
    param: str | None = None


class BatchHead(msgspec.Struct, frozen=True, kw_only=True):
    """How a batch stands. Times in seconds since the epoch; `output` and `error` are ids of files, which are there
    from its end on, "" where nothing was written to them."""

    endpoint: str
    input: str
    window: str
    end: float
    """The end of its window."""
    metadata: dict[str, str] | None = None
    output_seconds: int | None = None
    """Seconds for which its files are kept, as its client asks."""
    state: State = "validating"
    times: dict[str, float] = {}
    """When it came into each of its states."""
    output: str = ""
    error: str = ""
    total: int = 0
    completed: int = 0
    failed: int = 0
    is_late: bool = False
    """Its window ended before all lines ran: it will be expired."""
    faults: list[Fault] = []

    def into(self, state: State, now: float, **changes: Any) -> BatchHead:
        """The same in another state since `now`."""
        return msgspec.structs.replace(self, state=state, times={**self.times, state: now}, **changes)


class KeptBatch(NamedTuple):
    id: str
    owner: str
    created: float
    expires: float
    head: BatchHead

    @property
    def has_ended(self) -> bool:
        return self.head.state in ENDED

    def record(self) -> Record:
        head = msgspec.msgpack.encode(self.head)
        return Record(kind=KIND, id=self.id, owner=self.owner, created=self.created, expires=self.expires, head=head)


def batch_of(record: Record) -> KeptBatch:
    return KeptBatch(record.id, record.owner, record.created, record.expires, _decode(record.head))


_decode = msgspec.msgpack.Decoder(BatchHead).decode
