"""The colours, dashes and markers of the lines of a plot, no two alike.

A server, which is the first word of a name, has a hue of its own; its settings have shades of it, dashes and markers.
The hues are those that the colour-blind tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

OURS = "#c8102e"
HUES = (
    ("#0072b2", "#56b4e9", "#003f63", "#3a8fc4", "#8cc8ec", "#00598c"),
    ("#009e73", "#66c2a5", "#005840", "#33b38f", "#8fd3bf", "#007a59"),
    ("#b8860b", "#e69f00", "#7a5900", "#cc9a2e", "#f0c35e", "#996f00"),
    ("#6b737c", "#8a929b", "#3d444b", "#a3a9b0", "#555d66", "#bcc1c7"),
)
SHADES = (OURS, "#e5798a", "#8f1d5b", "#f4663a", "#b0708f", "#7a0a1c")
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
STRONG, WEAK = 2.4, 1.2


@dataclass(frozen=True)
class Mark:
    colour: str
    dash: str
    marker: str
    width: float


def marks(names: Sequence[str]) -> dict[str, Mark]:
    """A mark for each, in their order; what begins with "msx" is red, and the first of these has the thick line."""
    members: dict[str, list[str]] = {}
    for name in names:
        members.setdefault(_server(name), []).append(name)
    hues = iter(HUES * len(members))
    shades = {server: SHADES if is_ours(server) else next(hues) for server in members}
    markers = dict(zip(names, cycle(MARKERS), strict=False))
    return {
        name: _mark(name, members[_server(name)].index(name), shades[_server(name)], markers[name]) for name in names
    }


def is_ours(name: str) -> bool:
    return name.startswith("msx")


def _mark(name: str, number: int, shades: Sequence[str], marker: str) -> Mark:
    return Mark(
        shades[number % len(shades)],
        DASHES[number % len(DASHES)],
        marker,
        STRONG if is_ours(name) and number == 0 else WEAK,
    )


def _server(name: str) -> str:
    return name.partition(" ")[0].rstrip(",")
