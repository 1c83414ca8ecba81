"""Sockets that listen on when this process crashes, because another one keeps them, too."""

from collections.abc import Sequence
from socket import socket
from typing import Protocol


class KeepsSockets(Protocol):
    """Whoever keeps them. A name may have several sockets, one for each address of a host. Each call raises OSError."""

    def find(self, name: str) -> list[socket]:
        """Sockets of this name that a process before this one has opened; none where none has."""

    def keep(self, name: str, sockets: Sequence[socket]) -> None: ...

    def drop(self, name: str) -> None:
        """Nothing listens there any longer."""


class KeepsNone:
    """They end with this process."""

    def find(self, name: str) -> list[socket]:
        return []

    def keep(self, name: str, sockets: Sequence[socket]) -> None:
        return None

    def drop(self, name: str) -> None:
        return None


KEEPS_NONE = KeepsNone()
