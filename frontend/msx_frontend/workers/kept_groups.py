"""Worker groups that have outlived a frontend, and wait for one that starts the same."""

from __future__ import annotations

import hashlib
import logging
import sys
from contextlib import ExitStack
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import fields

from msx_frontend.devices import kept_leases
from msx_frontend.devices.kept_leases import KeptLease
from msx_frontend.supervision.client import SupervisorClient
from msx_frontend.supervision.program import Program, is_overwritten, program
from msx_frontend.workers.launcher import GroupSpec
from msx_frontend.workers.local_rank import LocalRank
from msx_frontend.workers.local_streams import PipeStream, SocketStream, socket_pair
from msx_frontend.workers.worker_process import SupervisedProcess
from msx_protocol import PROTOCOL_VERSION, Load

log = logging.getLogger("msx.workers")


def fingerprint(spec: GroupSpec) -> str:
    """Equal for two specifications whose groups load the same in the same environment. The server's version does not
    count, nor its own interpreter, in which workers go on."""
    python = "" if spec.python == sys.executable else spec.python
    ranks = [[_given(rank.load), sorted(rank.env.items()), rank.confinement] for rank in spec.ranks]
    return hashlib.sha256(msgspec.msgpack.encode([PROTOCOL_VERSION, python, ranks], enc_hook=repr)).hexdigest()


def _given(load: Load) -> dict[str, Any]:
    """Members that are not the usual ones: a later release has more of them."""
    found = {one.name: (getattr(load, one.name), one.default) for one in fields(load)}
    return {name: value for name, (value, usual) in found.items() if name != "server_version" and value != usual}


def note_of(spec: GroupSpec, rank: int, work_dir: Path) -> dict[str, Any]:
    """Note by which the next frontend finds this rank; none for a stage's worker, whose shared memory the frontend
    holds."""
    if spec.segments is not None:
        return {}
    note = {
        "group": _name(spec),
        "rank": rank,
        "fingerprint": fingerprint(spec),
        "program": list(program()),
        "work_dir": str(work_dir),
    }
    return note if spec.lease is None else {**note, "lease": kept_leases.note_of(spec.lease)}


class KeptGroup(NamedTuple):
    """`is_same`: it is what would be started now."""

    ranks: list[LocalRank]
    is_same: bool


class KeptGroups:
    """Groups by model, version and place. One that is not asked for is ended by the supervisor, after
    `keep_groups` seconds."""

    def __init__(self, supervisor: SupervisorClient) -> None:
        self._supervisor = supervisor
        self._waiting = list(supervisor.kept)

    def leases(self) -> list[KeptLease]:
        """Leases of those that are waiting, one for each group."""
        return [KeptLease.parse(note["lease"]) for note in self._waiting if "lease" in note and not note["rank"]]

    def take(self, spec: GroupSpec) -> KeptGroup | None:
        """The group that waits at this place."""
        found = sorted((note for note in self._waiting if note["group"] == _name(spec)), key=itemgetter("rank"))
        if not found:
            return None
        self._waiting = [note for note in self._waiting if note not in found]
        ranks: list[LocalRank] = []
        for note in found:
            try:
                ranks.append(self._adopted(note))
            except OSError as error:  # it has ended meanwhile
                log.warning("worker %d: process %d cannot be taken over: %s", spec.worker, note["pid"], error)
        wanted = [(rank, fingerprint(spec)) for rank in range(len(spec.ranks))]
        is_same = len(ranks) == len(found) and [(note["rank"], note["fingerprint"]) for note in found] == wanted
        overwritten = any(is_overwritten(Program(*note["program"]), program()) for note in found)
        return KeptGroup(ranks, is_same and not overwritten) if ranks else None

    def _adopted(self, note: dict[str, Any]) -> LocalRank:
        with ExitStack() as ours, ExitStack() as theirs:
            (data, data_fd), (control, control_fd) = socket_pair(ours, theirs), socket_pair(ours, theirs)
            pid = note["pid"]
            stdout, stderr = self._supervisor.adopt(pid, [data_fd, control_fd])
            ours.pop_all()
        return LocalRank(
            SupervisedProcess(pid, self._supervisor),
            Path(note["work_dir"]),
            data=SocketStream(data),
            control=SocketStream(control),
            stdout=PipeStream(stdout),
            stderr=PipeStream(stderr),
        )


def _name(spec: GroupSpec) -> list[Any]:
    load = spec.load
    return [load.model_name, load.model_version, load.place]
