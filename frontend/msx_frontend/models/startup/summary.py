"""The summary of the models that a server starts with."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msx_frontend.models.state.store import StoredVersion

MOST = 10
"""Versions that the summary names for each origin."""


@dataclass
class StartSummary:
    """Each text is one version."""

    asked: Sequence[str] = field(default_factory=list)
    """Given by `--models` or `load_models`."""
    of_snapshot: Sequence[str] = field(default_factory=list)
    """Given by `model_snapshot`."""
    remembered: Sequence[str] = field(default_factory=list)
    """Remembered in the state."""

    def text(self) -> str:
        said = {"asked for": self.asked, "of the snapshot": self.of_snapshot, "remembered": self.remembered}
        return "; ".join(f"{how}: {_few(versions)}" for how, versions in said.items() if versions) or "none"


def said_of(stored: StoredVersion) -> str:
    least, most = stored.min_workers, stored.max_workers
    count = f"{least} worker{'' if least == 1 else 's'}" if least == most else f"{least} to {most} workers"
    return f"{stored.name} {stored.version} ({count})"


def _few(versions: Sequence[str]) -> str:
    more = [f"and {len(versions) - MOST} more"] if len(versions) > MOST else []
    return ", ".join([*versions[:MOST], *more])
