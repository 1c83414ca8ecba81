"""MindSpore Serving's limit of the whole server: requests that it has accepted and not yet answered."""

from msx_core.service_errors import Overloaded


class EnqueuedRequests:
    """Counts over all models, versions and listeners. `limit` may be changed while requests are counted: those that
    were accepted stay."""

    def __init__(self, limit: int) -> None:
        """`limit`: the key `max_enqueued_requests`."""
        self.limit = limit
        self.count = 0

    def check(self) -> None:
        """Raises Overloaded, in MindSpore Serving's words, where no request is accepted."""
        if self.count >= self.limit:
            raise Overloaded(f"Serving Error: enqueued requests count exceeds the limit {self.limit}")

    def enter(self) -> None:
        """A request is accepted. Raises Overloaded."""
        self.check()
        self.count += 1

    def leave(self) -> None:
        """It is answered, or was refused after all."""
        self.count -= 1
