"""A callback on the disk: what is sent, and how far that is."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Any

import msgspec
from msgspec import structs

from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.records import CALLBACK, ENDLESS, KIND, Delivery, JobHead, decode_head, encode
from msx_frontend.store.records import DAY, Bounds, Record, Records

UNBOUNDED = Bounds(1 << 40, 1 << 60, "max_callbacks")
"""They are counted when their jobs are accepted."""


class CallbackNote(msgspec.Struct):
    """A callback of a job that has ended. `until`: when the last try may be, in seconds since the epoch; its record
    is kept a day longer, for servers that send none meanwhile."""

    url: str
    body: bytes
    until: float
    due: float = 0.0
    tries: int = 0
    asker: str = ""


def add_note(records: Records, entry: Entry, head: JobHead, url: str, until: float, expires: float) -> None:
    note = CallbackNote(url, message(entry.id, entry.created, head, expires), until, asker=head.asker)
    record = Record(
        kind=CALLBACK, id=entry.id, owner=entry.owner, created=time.time(), expires=until + DAY, head=encode(note)
    )
    records.add(record, {}, UNBOUNDED)


def all_notes(records: Records) -> list[Record]:
    return records.newest(CALLBACK, None, "", UNBOUNDED.most, (time.time(), ENDLESS))


def find_note(records: Records, id: str, owner: str) -> CallbackNote | None:
    found = records.find(CALLBACK, id, owner, time.time())
    return None if found is None else decode_note(found.head)


def write_try(records: Records, id: str, owner: str, note: CallbackNote, delivery: Delivery) -> None:
    """Write how a try went, to the job, too, where that is kept."""
    job = records.find(KIND, id, owner, time.time())
    if job is not None:
        head = structs.replace(decode_head(job.head), callback=delivery)
        records.change(KIND, id, encode(head), job.expires)
    if delivery.state == "waiting":
        records.change(CALLBACK, id, encode(note), note.until + DAY)
    else:
        records.delete(CALLBACK, id, owner)


def message(id: str, created: float, head: JobHead, expires: float) -> bytes:
    """The body, without the reply: who may fetch that has the job's key."""
    data: dict[str, Any] = {
        "id": id,
        "path": head.path,
        "state": head.state,
        "status": head.status,
        "created": created,
        "started": head.started,
        "ended": head.ended,
        "expires": expires,
        "result": f"/jobs/{id}/result",
    }
    timestamp = datetime.fromtimestamp(head.ended or created, timezone.utc).isoformat().replace("+00:00", "Z")
    return msgspec.json.encode({"type": event_type(head), "timestamp": timestamp, "data": data})


def event_type(head: JobHead) -> str:
    if head.state == "cancelled":
        return "job.cancelled"
    return "job.completed" if (head.status or 0) < 400 else "job.failed"


decode_note = msgspec.msgpack.Decoder(CallbackNote).decode
