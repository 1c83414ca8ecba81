"""Sockets that listen: a frontend binds them, and the supervisor keeps them open for the next one."""

from msx_frontend.supervision.wire import close_all


class KeptSockets:
    """Descriptors by the name that frontends give them; one name may have several, one an address of its host."""

    def __init__(self) -> None:
        self.kept: dict[str, list[int]] = {}
        self.used: set[str] = set()

    def keep(self, name: str, descriptors: list[int]) -> None:
        close_all(self.kept.pop(name, ()))
        self.kept[name] = descriptors
        self.used.add(name)

    def find(self, name: str) -> list[int]:
        """Find what has this name, for the frontend that runs now."""
        self.used.add(name)
        return self.kept.get(name, [])

    def drop(self, name: str) -> None:
        """Its frontend listens there no longer."""
        close_all(self.kept.pop(name, ()))

    def frontend_started(self) -> None:
        """Close what the new frontend has not asked for: its configuration has changed."""
        for name in self.kept.keys() - self.used:
            self.drop(name)

    def frontend_ended(self) -> None:
        self.used.clear()
