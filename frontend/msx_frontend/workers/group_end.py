"""Why a worker group ended, in sentences for clients and for the log."""

import signal
from dataclasses import dataclass
from pathlib import Path

from msx_archiver.room import is_full, room
from msx_core.service_errors import ServiceError, WorkerDied, WorkerTimedOut
from msx_frontend.management_errors import RequirementsFailed
from msx_frontend.public_text import public_text
from msx_protocol import LoadFailed


@dataclass(frozen=True)
class GroupEnd:
    """`reason` is a sentence; `error` is what the clients of running jobs get."""

    reason: str
    error: ServiceError
    expected: bool = False
    out_of_memory: bool = False
    traceback: str = ""
    brief: str = ""
    """A shorter reason, for readers that know the model and the group."""
    killed: bool = False
    """Killed from outside, by a signal or with its node: the model has not failed by itself."""
    elsewhere: bool = False
    """It was not at fault: it starts again at once, on other devices."""
    unanswered: bool = False
    """A call, or the load, has taken too long."""

    @property
    def public_reason(self) -> str:
        """The reason as clients read it that are refused because of this end."""
        return public_text(self.brief or self.reason)


def asked_to_stop() -> GroupEnd:
    reason = "The worker was told to stop."
    return GroupEnd(reason, WorkerDied(reason), expected=True)


def device_lost(reason: str) -> GroupEnd:
    """`reason` is a sentence without its full stop. The worker is not the cause: it starts again elsewhere."""
    sentence = f"The worker had to leave its devices: {reason}."
    return GroupEnd(sentence, WorkerDied(sentence), elsewhere=True)


def not_started(error: Exception) -> GroupEnd:
    left = f" ({room(Path(error.filename or '.'))})" if isinstance(error, OSError) and is_full(error) else ""
    reason = f"The worker's process could not be started: {error}{left}."
    return GroupEnd(reason, WorkerDied(reason))


def not_prepared(error: ServiceError) -> GroupEnd:
    """Something that its ranks are started from is missing."""
    return GroupEnd(error.message, WorkerDied(error.message))


def requirements_failed(error: RequirementsFailed) -> GroupEnd:
    return GroupEnd(error.message, WorkerDied(error.message), traceback=error.output)


def load_failed(message: LoadFailed, rank: str = "") -> GroupEnd:
    where = f" on {rank}" if rank else ""
    reason = f"The model could not be loaded{where}: {message.message}"
    brief = f"{rank}: {message.message}" if rank else message.message
    return GroupEnd(
        reason,
        WorkerDied(reason),
        out_of_memory=message.out_of_memory,
        traceback=message.traceback,
        brief=brief,
    )


def refused(reason: str) -> GroupEnd:
    """`reason`: a sentence on why what was loaded may not serve."""
    return GroupEnd(reason, WorkerDied(reason))


def load_too_slow(limit: float, phases: str) -> GroupEnd:
    """`phases`: `it was initializing`, or what each rank was doing."""
    reason = (
        f"The model was not loaded within startupTimeout ({limit:g} s; {phases}): "
        f"raise startupTimeout in model-config.yaml if it needs longer."
    )
    return GroupEnd(reason, WorkerDied(reason), unanswered=True)


def broken(reason: str, rank: str = "") -> GroupEnd:
    """`reason` is a rank's sentence, without its full stop, on why its process cannot serve any more."""
    sentence = f"The worker is replaced{f' because of {rank}' if rank else ''}: {reason}."
    return GroupEnd(sentence, WorkerDied(sentence))


def no_response(limit: float, silent: str = "", waiting: str = "") -> GroupEnd:
    """`silent` is the rank that does not answer pings; `waiting` says which ranks wait for which."""
    more = [waiting, f"{silent} does not answer pings either" if silent else ""]
    details = "; ".join(filter(None, [f"{limit:g} s", *more]))
    reason = f"The worker did not respond within responseTimeout ({details})."
    return GroupEnd(reason, WorkerTimedOut(reason), unanswered=True)


def no_heartbeat(limit: float, rank: str = "") -> GroupEnd:
    reason = f"The worker missed its heartbeat for {limit:g} s{f' ({rank})' if rank else ''}."
    return GroupEnd(reason, WorkerDied(reason))


def kept_values(limit: float) -> GroupEnd:
    reason = (
        f"The worker kept an input of a request in shared memory for longer than responseTimeout ({limit:g} s) after "
        f"its reply: a handler that keeps inputs keeps copies of them (context.writable)."
    )
    return GroupEnd(reason, WorkerTimedOut(reason))


def diverged(sentence: str) -> GroupEnd:
    """One rank of a parallel group does not do what the others do."""
    return GroupEnd(sentence, WorkerDied(sentence))


def too_much_memory(rank: int, pid: int, taken: int, limit: int) -> GroupEnd:
    """End with TorchServe's status for a worker that the OOM killer ended, which would have been next."""
    mine, most = taken >> 20, limit >> 20
    reason = (
        f"Rank {rank} (pid {pid}) was ended: it had taken {mine} MiB of memory, and maxWorkerMemory lets it have "
        f"{most} MiB. Raise maxWorkerMemory in model-config.yaml (or the server's max_worker_memory) if the model "
        f"needs more; if it grows with each request, the handler keeps what it should let go."
    )
    return GroupEnd(reason, WorkerDied(reason, killed=True), out_of_memory=True)


_KILLS = {-signal.SIGKILL: "killed by SIGKILL, perhaps out of memory", -signal.SIGTERM: "killed by SIGTERM"}
"""Exit codes of processes that others have ended: the OOM killer and the likes of earlyoom, or an operator."""


def exited(rank: int, pid: int, code: int, crash_cause: str, name: str = "", advice: str | None = None) -> GroupEnd:
    """A negative code is the signal. SIGKILL is the OOM killer's: TorchServe answers 507. `name`: the rank's, where
    there are several. `advice`: a sentence without its full stop."""
    out_of_memory = code == -signal.SIGKILL
    reason = f"Rank {rank} (pid {pid}) {_how(code)}."
    if crash_cause and not out_of_memory:
        reason += f" Its last words: {crash_cause}"
    if advice:
        reason += f" ({advice}.)"
    kill = _KILLS.get(code, "")
    return GroupEnd(
        reason,
        WorkerDied(reason, killed=out_of_memory),
        out_of_memory=out_of_memory,
        brief=f"{name}: {kill}" if name and kill else kill,
        killed=bool(kill),
    )


def lost(rank: int, reason: str) -> GroupEnd:
    """`reason` is a sentence without its full stop: nobody knows how the rank ended."""
    sentence = f"Rank {rank} was lost: {reason}."
    return GroupEnd(sentence, WorkerDied(sentence), killed=True)


def _how(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "an unknown signal"
    return f"was ended by signal {-code} ({name})"
