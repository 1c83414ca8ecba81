"""Finds a rank of a parallel group that diverges or hangs, from the reports of all ranks after each call."""

import asyncio
import re
from collections.abc import Callable

from msx_protocol import CallDone

ERROR_PATIENCE = 1.0
"""Seconds for the other ranks to fail as one rank did; after that it is that rank's failure alone.

The others may sit in a collective which that rank will never enter, until its time-out.
"""

Reports = dict[int, CallDone]


class Lockstep:
    """`on_divergence` is called once, with a sentence that names the rank.

    While `warming_up` ranks may compile for as long as the start may take, some longer than others.
    """

    def __init__(self, ranks: int, skew_timeout: float, on_divergence: Callable[[str], None]) -> None:
        self._ranks = ranks
        self._skew_timeout = skew_timeout
        self._on_divergence = on_divergence
        self._calls: dict[int, Reports] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._forgotten = 0
        """Number of the last call that does not count."""
        self.warming_up = True

    @property
    def busy(self) -> bool:
        """Some ranks have ended a call, and others have not."""
        return bool(self._calls)

    @property
    def in_doubt(self) -> bool:
        """A call failed on some ranks, and it is open whether it does on all."""
        return any(_errors(reports) for reports in self._calls.values())

    def forget(self, call: int) -> None:
        """Calls up to this one began for a frontend that has crashed: not every report of theirs has come here."""
        self._forgotten = max(self._forgotten, call)
        for earlier in [one for one in self._calls if one <= call]:
            del self._calls[earlier]
            if timer := self._timers.pop(earlier, None):
                timer.cancel()

    def reported(self, rank: int, report: CallDone) -> None:
        if report.call <= self._forgotten:
            return
        reports = self._calls.setdefault(report.call, {})
        reports[rank] = report
        if timer := self._timers.pop(report.call, None):
            timer.cancel()
        if len(reports) == self._ranks:
            del self._calls[report.call]
            if odd := _difference(reports):
                self._diverged(odd)
        else:
            self._watch(report.call)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._calls.clear()

    def _watch(self, call: int) -> None:
        patience = self._skew_timeout
        if _errors(self._calls[call]):
            patience = min(ERROR_PATIENCE, patience)
        elif self.warming_up:
            return
        self._timers[call] = asyncio.get_running_loop().call_later(patience, self._overdue, call)

    def _overdue(self, call: int) -> None:
        reports = self._calls[call]
        missing = [rank for rank in range(self._ranks) if rank not in reports]
        if errors := _errors(reports):
            self._diverged(_failed_alone(errors, missing))
        else:
            late, others, limit = named(missing), named(sorted(reports)), f"{self._skew_timeout:g} s"
            self._diverged(f"{late} did not end a call within rankSkewTimeout ({limit}) after {others.lower()}.")

    def _diverged(self, sentence: str) -> None:
        self.close()
        self._on_divergence(sentence)


def _errors(reports: Reports) -> dict[int, str]:
    return {rank: report.error for rank, report in sorted(reports.items()) if report.error}


def _difference(reports: Reports) -> str:
    """The first difference between reports that must be equal; "" if there is none."""
    errors = _errors(reports)
    others = [rank for rank in sorted(reports) if rank not in errors]
    if errors and others:
        return _failed_alone(errors, others)
    return ("" if errors else _other_steps(reports)) or _other_collectives(reports)


def _other_steps(reports: Reports) -> str:
    first = reports[0]
    for rank, report in sorted(reports.items()):
        if report.requests != first.requests:
            return f"Rank {rank} worked on other requests than rank 0."
        if report.steps != first.steps:
            return f"Rank {rank} took {report.steps} steps of a call in which rank 0 took {first.steps}."
    return ""


def _other_collectives(reports: Reports) -> str:
    """The ranks in the brackets of a name (`all_reduce[0,1]`) must have counted the same."""
    for name in sorted({name for report in reports.values() for name in report.collectives}):
        ranks = [int(number) for number in re.findall(r"\d+", name.partition("[")[2])]
        counted = {rank: reports[rank].collectives.get(name, 0) for rank in ranks if rank in reports}
        if len(set(counted.values())) > 1:
            told = ", ".join(f"rank {rank} made {number}" for rank, number in counted.items())
            return f"The ranks do not agree on {name}: {told}."
    return ""


def _failed_alone(errors: dict[int, str], others: list[int]) -> str:
    rank, error = next(iter(errors.items()))
    return f"Rank {rank} failed while {named(others).lower()} did not: {error}"


def named(ranks: list[int]) -> str:
    return f"Rank {ranks[0]}" if len(ranks) == 1 else "Ranks " + ", ".join(map(str, ranks))
