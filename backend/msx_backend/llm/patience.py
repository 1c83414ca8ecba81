"""How often a text gives way to later ones of better priorities: none starves."""

from __future__ import annotations

from bisect import bisect_right

from msx_backend.llm.sequence import TokenSequence

PATIENCE = 64
"""To so many texts of later requests a text gives way; then it comes before all of them, to its end."""
OVERDUE = -(1 << 64)
"""The priority that it has then: before all that requests may name. Among such texts the order is that of arrival."""


def pass_by(admitted: TokenSequence, waiting: list[TokenSequence], running: list[TokenSequence]) -> None:
    """The first that waited goes before those that came earlier, and wait or have a prompt that is not computed yet.

    `waiting` is kept in its order; those of the same priority came later.
    """
    behind = waiting[bisect_right(waiting, _priority(admitted), key=_priority) :]
    filling = [other for other in running if other.left > 1 and other.order > admitted.order]
    passed = [other for other in behind + filling if other.request < admitted.request]
    for other in passed:
        _give_way(other)
    if any(_priority(other) == OVERDUE for other in passed):
        waiting.sort(key=_order)


def _give_way(sequence: TokenSequence) -> None:
    sequence.given_way += 1
    if sequence.given_way >= PATIENCE:
        sequence.order = (OVERDUE, sequence.request, sequence.index)


def _priority(sequence: TokenSequence) -> int:
    return sequence.order[0]


def _order(sequence: TokenSequence) -> tuple[int, int, int]:
    return sequence.order
