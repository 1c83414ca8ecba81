"""How often a text gives way to later ones of better priorities: none starves."""

from msx_llm.sequence import TokenSequence
from msx_llm.waiting import OVERDUE, WaitingTexts

PATIENCE = 64
"""Number of texts of later requests with better priorities to which a text gives way; then it comes before all of them,
to its end. Among such texts the order is that of arrival."""


def pass_by(admitted: TokenSequence, waiting: WaitingTexts, running: list[TokenSequence]) -> None:
    """The first that waited goes before those of worse priorities that came earlier, and wait or have a prompt that is
    not computed yet."""
    for other in running:
        if other.left > 1 and other.priority > admitted.priority and _gave_way_enough(other, admitted):
            _overdue(other)
    for other in waiting.worse_than(admitted.priority):
        if _gave_way_enough(other, admitted):
            waiting.remove(other)
            _overdue(other)
            waiting.add(other)


def _gave_way_enough(text: TokenSequence, admitted: TokenSequence) -> bool:
    if text.request > admitted.request:
        return False
    text.given_way += 1
    return text.given_way >= PATIENCE


def _overdue(text: TokenSequence) -> None:
    text.order = (OVERDUE, text.request, text.index)
