"""Who has a turn: requests and keys."""

import msgspec


class Owner(msgspec.Struct, frozen=True, array_like=True):
    """Requests of different keys take turns, and so do requests of one key; texts of one request share its turns.

    `key` stands for the client's key, "" without one; `request` is the number of the client's request, which may be
    several of a worker's.
    """

    key: str
    request: int
