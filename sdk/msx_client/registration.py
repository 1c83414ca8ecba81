"""How far a model is that is being registered or scaled, by what describe says of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msx_client.errors import ModelFailedError

Progress = Callable[[str], None]


LOOK = 0.5
"""Seconds between two looks at a registration that lasts."""


class Loading:
    """`progress` is called with each new phase: `LOADING: fetching the archive: 1.0 MiB of 5.0 MiB`."""

    def __init__(self, model: str, progress: Progress | None) -> None:
        self._model, self._progress = model, progress
        self.phase = "it has not been described yet"

    def look(self, described: Sequence[Mapping[str, Any]]) -> None:
        """While it is being registered: an older version of it may be there."""
        if described[0].get("state") == "LOADING":
            self._say(phase_of(described[0]))

    def is_ready(self, described: Sequence[Mapping[str, Any]]) -> bool:
        """Raises ModelFailedError when it will not become ready by itself."""
        model = described[0]
        state = str(model.get("state", ""))
        self._say(phase_of(model))
        if state == "FAILED":
            raise ModelFailedError(f"{self._model}: {model.get('reason') or self.phase}")
        return state == "READY"

    def _say(self, phase: str) -> None:
        if phase != self.phase:
            self.phase = phase
            if self._progress is not None:
                self._progress(phase)


def phase_of(model: Mapping[str, Any]) -> str:
    """The state, and what its workers are doing or why it is not ready."""
    phases = [str(worker["phase"]) for worker in model.get("workers", ()) if worker.get("phase")]
    more = str(model.get("reason") or "") or ", ".join(dict.fromkeys(phases))
    return f"{model.get('state', '')}: {more}" if more else str(model.get("state", ""))
