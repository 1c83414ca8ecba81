"""A server that sends no callbacks."""

from __future__ import annotations

from collections.abc import Mapping

from msx_frontend.deferred.callbacks.errors import WrongCallback
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.records import JobHead
from msx_frontend.store.records import Records


class NoCallbacks:
    """Stands for Callbacks where no host may be called."""

    waiting = 0
    tries: Mapping[str, int] = {}

    def check(self, url: str, owner: str) -> None:
        """Raises WrongCallback."""
        raise WrongCallback("no callbacks are sent: callback_hosts in the server's config.properties does it")

    async def begin(self) -> None:
        pass

    def pause(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def added(self, entry: Entry) -> None:
        pass

    def ending(self, records: Records, entry: Entry, head: JobHead, expires: float) -> None:
        pass

    def ended(self, entry: Entry) -> None:
        pass

    def forgotten(self, id: str) -> None:
        pass
