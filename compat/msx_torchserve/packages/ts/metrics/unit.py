"""`ts.metrics.unit`."""

from msx_core.metrics.kinds import UNITS


class Units:
    """Short names of units, and what they are called in metrics."""

    def __init__(self) -> None:
        self.units: dict[str | None, str] = dict([*UNITS.items(), ("", "unit"), (None, "unit")])
