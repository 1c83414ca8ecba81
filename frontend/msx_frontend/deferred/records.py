"""A deferred request on the disk: what was asked, how it stands, its reply."""

from __future__ import annotations

import hashlib
import time
from typing import Literal

import msgspec

from msx_core.request_ids import new_request_id

KIND, IDEMPOTENCY, CALLBACK = "job", "idempotency-key", "callback"
REQUEST, REPLY = "request", "reply"
"""Names of a record's parts."""
LEFT_OUT = frozenset(
    b"authorization x-api-key cookie prefer idempotency-key content-length connection expect transfer-encoding "
    b"te upgrade keep-alive x-request-id x-msx-callback".split()
)
"""Headers that are not kept: they are of a connection, or secret."""
ENDLESS = 1e12
"""The end of a record that no sweep removes, in seconds since the epoch: of what has not ended."""
CALLBACK_HEADER = b"x-msx-callback"
"""The header with the URL that is told of a job's end."""
CANCELLED = 499
"""The status of a job that was cancelled."""

State = Literal["queued", "running", "done", "cancelled"]
RawHeaders = list[tuple[bytes, bytes]]


class Deferred(msgspec.Struct):
    """The request: path and query as they were sent, and headers whose names are in lower case."""

    target: bytes
    headers: RawHeaders
    body: bytes


class LateReply(msgspec.Struct):
    """The reply as it would have been."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Delivery(msgspec.Struct, kw_only=True):
    """How far the callback of a job is. `next`: of its next try, in seconds since the epoch; `status`, `error`: of the
    last one."""

    url: str
    state: Literal["waiting", "delivered", "failed"] = "waiting"
    tries: int = 0
    next: float | None = None
    status: int | None = None
    error: str | None = None


class JobHead(msgspec.Struct):
    """How a job stands. Times in seconds since the epoch."""

    path: str
    state: State = "queued"
    started: float | None = None
    ended: float | None = None
    status: int | None = None
    note: str = ""
    """The id of the record of its Idempotency-Key, which is kept as long as the job."""
    callback: Delivery | None = None
    asker: str = ""
    """Who asked for the callback: the name of a key, or the address of a client without one."""

    @property
    def run(self) -> str:
        """Tells one run of the job from the others, also after a restart."""
        return f"{int((self.started or 0.0) * 1e6):x}"


def new_job_id() -> str:
    """It begins with the second of its creation, so that a job that was removed is told from one that never was."""
    return f"job_{int(time.time()):08x}{new_request_id().replace('-', '')}"


def created_of(id: str) -> float | None:
    """Seconds since the epoch; None for what is no id of a job."""
    try:
        return float(int(id[4:12], 16)) if id.startswith("job_") and len(id) == 44 else None
    except ValueError:
        return None


def kept_headers(headers: RawHeaders, *, unpacked: bool) -> RawHeaders:
    """The headers with which the request is run later. `unpacked`: its body was decompressed."""
    out = LEFT_OUT | {b"content-encoding"} if unpacked else LEFT_OUT
    return [(name, value) for name, value in headers if name not in out]


def body_digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def idempotency_id(owner: str, target: bytes, key: str) -> str:
    return hashlib.sha256(b"\0".join((owner.encode(), target, key.encode()))).hexdigest()


encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Deferred).decode
decode_reply = msgspec.msgpack.Decoder(LateReply).decode
decode_head = msgspec.msgpack.Decoder(JobHead).decode
