"""The note of a worker's process, which its supervisor keeps: by it the next frontend finds the group."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import fields

from msx_frontend.devices import kept_leases
from msx_frontend.supervision.program import Program, is_overwritten, program
from msx_frontend.workers.launcher import GroupSpec
from msx_frontend.workers.segments.allowance import SegmentSocket
from msx_protocol import PROTOCOL_VERSION, Load

Note = dict[str, Any]


def fingerprint(spec: GroupSpec) -> str:
    """Equal for two specifications whose groups load the same in the same environment. The server's version does not
    count, nor its own interpreter, in which workers go on."""
    python = "" if spec.python == sys.executable else spec.python
    shared = [] if spec.segments is None else [spec.segments]
    ranks = [[_given(rank.load), sorted(rank.env.items()), rank.confinement] for rank in spec.ranks]
    return hashlib.sha256(msgspec.msgpack.encode([PROTOCOL_VERSION, python, ranks, *shared], enc_hook=repr)).hexdigest()


def _given(load: Load) -> dict[str, Any]:
    """Members that are not the usual ones: a later release has more of them."""
    found = {one.name: (getattr(load, one.name), one.default) for one in fields(load)}
    return {name: value for name, (value, usual) in found.items() if name != "server_version" and value != usual}


def note_of(spec: GroupSpec, rank: int, work_dir: Path, segments: SegmentSocket | None = None) -> dict[str, Any]:
    """Note by which the next frontend finds this rank; `segments`: shared memory of a stage's."""
    note = {
        "group": spec.name,
        "rank": rank,
        "fingerprint": fingerprint(spec),
        "program": list(program()),
        "work_dir": str(work_dir),
    }
    if segments is not None:
        note["segments"] = [segments.owner, *segments.limits]
    return note if spec.lease is None else {**note, "lease": kept_leases.note_of(spec.lease)}


def groups_at(notes: Sequence[Note], name: list[Any]) -> list[list[Note]]:
    """Notes of each group of this name, by rank, in the order of their starts."""
    found: dict[str, list[Note]] = {}
    for note in notes:
        if note["group"] == name:
            found.setdefault(note["work_dir"].rpartition("-r")[0], []).append(note)
    return [sorted(group, key=itemgetter("rank")) for group in found.values()]


def is_same(spec: GroupSpec, found: Sequence[Note]) -> bool:
    """Whether a group is what would be started."""
    wanted = [(rank, fingerprint(spec)) for rank in range(len(spec.ranks))]
    overwritten = any(is_overwritten(Program(*note["program"]), program()) for note in found)
    lasts = all(note.get("lasts", True) for note in found)
    return lasts and [(note["rank"], note["fingerprint"]) for note in found] == wanted and not overwritten


def is_held(found: Sequence[Note]) -> bool:
    """Whether the frontend before this one has the group."""
    return any(note["held"] for note in found)
