"""How many worker processes a server may have: the ranks of a group count each."""

from msx_frontend.resources.shortage import Shortage

KEY = "max_worker_processes"


class TooManyProcessesError(RuntimeError):
    """More than the server may ever have."""


class Processes:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken = 0

    def check(self, model_key: str, workers: int, ranks: int) -> None:
        """Raises TooManyProcessesError when so many workers could never be started, even if no other model had any."""
        if workers * ranks > self.limit:
            of_each = f" of {ranks} processes each" if ranks > 1 else ""
            raise TooManyProcessesError(
                f"{model_key} cannot have {workers} workers{of_each}: this server may have {self.limit} worker "
                f"processes ({KEY}); ask for fewer workers, or raise it"
            )

    def shortage(self, model_key: str, ranks: int) -> Shortage | None:
        """Why this model cannot have so many more now, without figures that change often: many groups may wait."""
        if self._taken + ranks <= self.limit:
            return None
        needs = f"{model_key} needs {ranks} worker process{'es' if ranks > 1 else ''} for one more worker"
        taken = f"others have too many of the {self.limit} that this server may have ({KEY})"
        remedy = "it starts when they have fewer, or raise it"
        return Shortage("processes", f"{needs}, and {taken}; {remedy}")

    def take(self, ranks: int) -> None:
        self._taken += ranks

    def give_back(self, ranks: int) -> None:
        self._taken -= ranks
