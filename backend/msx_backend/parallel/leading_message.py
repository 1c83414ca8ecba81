"""A message by which rank 0's handler leads the other ranks."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from msx_backend.parallel.reports import CallReport, collectives
from msx_backend.replies import ReplyWriter
from msx_core.leading import Leading


class LeadingMessage(Leading):
    """Parts of several messages may alternate. `counted`, which they share, has the collectives of the messages that
    have ended, so that rank 0 reports the same counts for a message as the other ranks."""

    def __init__(self, report: CallReport, counted: Counter[str], replies: ReplyWriter) -> None:
        self._report, self._counted, self._replies = report, counted, replies
        self._own: Counter[str] = Counter()

    @contextmanager
    def part(self) -> Iterator[None]:
        before = Counter(collectives())
        try:
            yield
        finally:
            self._own += Counter(collectives()) - before

    def end(self, error: BaseException | None = None) -> None:
        self._counted += self._own
        self._report.send(self._replies, error, dict(self._counted))
