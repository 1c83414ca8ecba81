"""A client's key, as far as connections know it: what it opens, until when, and how often."""

from typing import Literal, Protocol

from msx_core.priorities import priority_of
from msx_net.model_names import ModelNames

Kind = Literal["inference", "management"]
"""The kind of key that opens a route or a method."""


class ClientKey(Protocol):
    """A key. None in its place means that the client needs none."""

    name: str
    """Name for the access log; "" for a key without a name."""
    digest: bytes
    """Stands for the key where the key itself must not."""
    until: float
    """Seconds since the epoch; 0 for a withdrawn key. A connection that has kept the key sees that at once."""
    models: frozenset[str] | None
    """The models that it is good for, by their own names; None for all."""
    names: ModelNames
    """Aliases, which mean the models that they are names of."""

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of routes and methods that it opens: each `Kind`, and further ones of the server."""

    @property
    def rate(self) -> object | None:
        """None where `take` has nothing to count."""

    def take(self) -> None:
        """Count one request. Raises TooManyRequests above the rate of the key."""

    def check_priority(self, asked: int) -> None:
        """Raises PriorityNotAllowed."""

    def check_model(self, model: str) -> None:
        """Raises ModelNotAllowed."""

    def check_app(self, app: str) -> None:
        """Raises AppNotAllowed."""

    def allows(self, model: str) -> bool: ...


def granted_priority(asked: str, key: ClientKey | None) -> int:
    """The class of this name, which the key grants. Without a key all are open: clients cannot be told apart. Raises
    BadRequest, PriorityNotAllowed."""
    priority = priority_of(asked)
    if key is not None:
        key.check_priority(priority)
    return priority


def owner_of_key(key: ClientKey | None) -> str:
    """The owner of what a client makes: the name of its key, so that a key may be replaced; "" for the key that the
    server has generated, and without keys."""
    return "" if key is None else key.name
