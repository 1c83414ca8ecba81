"""The owner of a stream to which nothing of its client matters any more."""


class AnsweredStream:
    """Its answer was complete when it began."""

    def data(self, data: bytes) -> None: ...

    def ended(self) -> None: ...

    def lost(self, reason: str) -> None: ...

    def drained(self) -> None: ...

    def too_slow(self, reason: str) -> None: ...


ANSWERED = AnsweredStream()
