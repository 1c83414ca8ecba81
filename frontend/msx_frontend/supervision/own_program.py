"""The program of the supervisor: when it changes, and what is done before."""

from __future__ import annotations

import signal
from collections.abc import Callable

from msx_frontend.supervision.handled import HANDLED
from msx_frontend.supervision.program import program
from msx_frontend.supervision.replacement import PROGRAM, Replacement
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.saying import say
from msx_frontend.supervision.state import SupervisorState, descriptors
from msx_frontend.supervision.succession import Succession
from msx_frontend.supervision.trial import Trial
from msx_frontend.supervision.upgrade import Upgrade
from msx_frontend.supervision.wire import STATES, Message

KEEP = "Keep that environment until the server is stopped, or another upgrade has replaced the supervisor."


class OwnProgram:
    """When the frontend of an upgrade serves, this process becomes its program, too. Without an upgrade it becomes once
    the small program that it is. Both are tried before, while the supervisor goes on."""

    def __init__(
        self,
        succession: Succession,
        restarts: Restarts,
        state: SupervisorState,
        replacement: Replacement,
        signalled: Callable[[], bool],
        *,
        grown: bool = False,
    ) -> None:
        """`signalled`: whether signals have come that are not handled yet. `grown`: this process has read more than a
        supervisor needs."""
        self._succession, self._restarts, self._state = succession, restarts, state
        self._replacement, self._signalled, self._grown = replacement, signalled, grown
        self.now = program()
        self._trial: Trial | None = None

    @property
    def name(self) -> str:
        return f"that of release {self.now.version} ({self.now.python})"

    @property
    def pids(self) -> set[int]:
        """Numbers of processes that it has started and not reaped."""
        return set() if self._trial is None else {self._trial.pid}

    @property
    def seconds_left(self) -> float | None:
        """Until something is due."""
        proof = self._restarts.seconds_to_proof if self._grown else None
        trial = None if self._trial is None else self._trial.seconds_left
        return min((one for one in (proof, trial) if one is not None), default=None)

    def stays(self, reason: str) -> str:
        """Sentences for the user who has ordered an upgrade."""
        return f"The supervisor stays {self.name}: {reason}. {KEEP}"

    def turn(self) -> None:
        """Begin the trial of a program that this process is to become, and become that when it has succeeded."""
        python = self._wanted()
        if self._trial is not None and self._trial.python != python:
            self.close()
        if python is None:
            return
        if self._trial is None:
            self._try(python)
        elif self._trial.is_over and self._serves:
            self._become(self._trial)

    def close(self) -> None:
        """End the trial."""
        if self._trial is not None:
            self._trial.end()
            self._trial = None

    def _wanted(self) -> str | None:
        """Interpreter of the program that it is to become now."""
        if (upgrade := self._succession.succeeded) is not None:
            return upgrade.python
        return self.now.python if self._may_shrink else None

    @property
    def _may_shrink(self) -> bool:
        """Nothing is under way, and the start is over: until then, another interpreter would only delay it."""
        succession = self._succession
        waits = succession.orders is not None and succession.orders.seconds_left is not None
        return self._grown and self._restarts.is_proven and not waits and not succession.refusal()

    @property
    def _serves(self) -> bool:
        frontend = self._succession.frontend
        return frontend is not None and frontend.started

    def _try(self, python: str) -> None:
        try:
            if (reason := self._refusal()) is None:
                self._trial = Trial(python, PROGRAM)
                return
        except Exception as error:  # it may be any program, and has said anything: all workers would end
            reason = self._failed(python, error)
        self._stay(reason)

    def _refusal(self) -> str | None:
        """Why it stays what it is; "" where there is nothing to change. None: it may change. Raises OSError."""
        if (upgrade := self._succession.succeeded) is None:
            return None if program() == self.now else "its installation was overwritten"
        new = upgrade.frontend.program
        if new is None or self._succession.stopping or (new == self.now and not self._grown):
            return ""
        if STATES[-1] not in upgrade.frontend.states:
            return f"release {new.version} does not go on with its state"
        return None

    def _become(self, trial: Trial) -> None:
        """The signals that come meanwhile are the next program's."""
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
        try:
            if self._signalled():
                return  # that is done first
            self._trial = None
            error = trial.end() or self._run(trial.python)
            self._stay(self._failed(trial.python, error))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)

    def _run(self, python: str) -> Exception:
        """Does not return where it succeeds."""
        upgrade, orders = self._succession.succeeded, self._succession.orders
        if orders is not None:
            orders.refuse_all("Another upgrade is under way.")
        try:
            state = {**self._state.describe(), "program": [*self.now]}
            waiting = None if upgrade is None else upgrade.waiting
            return self._replacement.become(python, state, descriptors(state), waiting, _answer(upgrade))
        except Exception as unexpected:  # a bug: nothing has changed, and all workers would end with this process
            return unexpected

    def _failed(self, python: str, error: Exception) -> str:
        reason = error.strerror or str(error) if isinstance(error, OSError) else repr(error)
        return reason if self._succession.succeeded is None else f"{python} cannot be run: {reason}"

    def _stay(self, reason: str) -> None:
        """Stay what it is, which is tried once. Without a reason there is nothing to change."""
        if (upgrade := self._succession.succeeded) is None:
            self._grown = False
            say(f"the supervisor stays as large as it is: {reason}")
        else:
            self._succession.succeeded = None
            upgrade.succeeded(self.stays(reason) if reason else "")


def _answer(upgrade: Upgrade | None) -> Message:
    """Answer of the next program to the command that waits."""
    return {} if upgrade is None else {"pid": upgrade.frontend.pid}
