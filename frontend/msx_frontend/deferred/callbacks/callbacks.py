"""Tells URLs that jobs have ended: at least once, and for a day."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from urllib.parse import urlsplit

from msgspec import structs

from msx_frontend.deferred.book import SHARE
from msx_frontend.deferred.callbacks.errors import TooManyCallbacks, WrongCallback
from msx_frontend.deferred.callbacks.lanes import AT_ONCE, BusyLanes, Waiting, host_of
from msx_frontend.deferred.callbacks.records import CallbackNote, add_note, all_notes, decode_note, find_note, write_try
from msx_frontend.deferred.callbacks.schedule import LASTS, wait_after
from msx_frontend.deferred.callbacks.sender import CallbackAnswer, CallbackSender, not_allowed
from msx_frontend.deferred.callbacks.turns import CallbackTurns
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.records import Delivery, JobHead
from msx_frontend.deferred.tasks import Tasks
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.store.records import Records
from msx_frontend.store.store import Store
from msx_net.outgoing.allowed import AllowedHosts

log = logging.getLogger("msx.jobs")

LONGEST_URL = 2048
"""Bytes."""
DISK_AGAIN_AFTER = 5.0
"""Seconds until a full disk is tried again."""
GONE = 410
"""The status of a receiver that wants no more."""


class Callbacks:
    """Listens to the ends of jobs (EndListener)."""

    def __init__(self, store: Store, sender: CallbackSender, hosts: AllowedHosts, most: int) -> None:
        """`most` callbacks whose jobs have not ended, or which were not taken yet."""
        self._store, self._sender, self._hosts, self._most = store, sender, hosts, most
        self._open: dict[str, Waiting] = {}
        """These, by the ids of their jobs."""
        self._counts: Counter[str] = Counter()
        """Their number, by owner."""
        self._turns = CallbackTurns()
        self._running = BusyLanes()
        self._timers: dict[Waiting, asyncio.TimerHandle] = {}
        self._tasks = Tasks()
        self._has_begun = False
        self.tries = Counter({"delivered": 0, "retried": 0, "failed": 0})
        """Tries of this server, by what became of them."""

    @property
    def waiting(self) -> int:
        """Callbacks whose jobs have not ended, or which were not taken yet."""
        return len(self._open)

    def check(self, url: str, owner: str) -> None:
        """Look whether the URL may be asked, before its job is accepted. Raises WrongCallback, TooManyCallbacks."""
        if len(url) > LONGEST_URL:
            raise WrongCallback(f"a URL has at most {LONGEST_URL} characters")
        try:
            parts = urlsplit(url)
            host = host_of(url)
            is_plain = parts.scheme in ("http", "https") and bool(host) and "@" not in parts.netloc and url.isascii()
            _ = parts.port
        except ValueError:
            is_plain, host = False, ""
        if not is_plain:
            raise WrongCallback("expected a URL of http or https, without a user")
        if not self._hosts.has(host):
            raise WrongCallback(not_allowed(host[:100]))
        if len(self._open) >= self._most:
            raise TooManyCallbacks(self._most)
        if owner and self._counts[owner] >= self._most * SHARE:
            raise TooManyCallbacks(round(self._most * SHARE), owner)

    async def begin(self) -> None:
        """Take up the callbacks that an earlier server has not sent."""
        self._has_begun = True
        for record in await self._store.run(all_notes):
            if record.id not in self._open:
                note = decode_note(record.head)
                self._later(self._hold(Waiting(record.id, record.owner, note.asker, note.url)), note.due)
        self._next()

    def pause(self) -> None:
        """Begin no further tries."""
        self._has_begun = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    async def close(self) -> None:
        """Stop, also what is being sent: that is sent again after the next start. Idempotent."""
        self.pause()
        await self._tasks.close()
        self._sender.close()

    # -- EndListener --

    def added(self, entry: Entry) -> None:
        if entry.head.callback is not None:
            self._hold(Waiting(entry.id, entry.owner, entry.head.asker, entry.head.callback.url))

    def ending(self, records: Records, entry: Entry, head: JobHead, expires: float) -> None:
        if head.callback is not None:
            add_note(records, entry, head, head.callback.url, (head.ended or 0.0) + LASTS, expires)

    def ended(self, entry: Entry) -> None:
        if (one := self._open.get(entry.id)) is not None:
            self._queue(one)

    def forgotten(self, id: str) -> None:
        """The job was deleted: its place is free, also where the next try is far off."""
        if (one := self._open.get(id)) is not None:
            if (timer := self._timers.pop(one, None)) is not None:
                timer.cancel()
            self._turns.drop(one)
            self._release(one)

    def _hold(self, new: Waiting) -> Waiting:
        if (one := self._open.setdefault(new.id, new)) is new:
            self._counts[one.owner] += 1
        return one

    def _release(self, one: Waiting) -> None:
        if self._open.pop(one.id, None) is not None:
            self._counts -= Counter([one.owner])

    # -- one callback --

    def _later(self, one: Waiting, due: float) -> None:
        wait = max(due - time.time(), 0.0)
        self._timers[one] = asyncio.get_running_loop().call_later(wait, self._queue, one)

    def _queue(self, one: Waiting) -> None:
        self._timers.pop(one, None)
        self._turns.add(one)
        self._next()

    def _next(self) -> None:
        while self._has_begun and self._running.total < AT_ONCE:
            if (one := self._turns.take(self._running)) is None:
                return
            self._running.add(one)
            self._tasks.spawn(self._run(one))

    async def _run(self, one: Waiting) -> None:
        try:
            due = await self._try(one)
        except Exception:
            one.faults += 1
            due = time.time() + wait_after(one.faults, 0.0)
            log.exception("a try of the callback of the job %s failed: it is sent again", one.id)
        finally:
            self._running.remove(one)
        if due is None:
            self._release(one)
        elif self._has_begun and one.id in self._open:
            self._later(one, due)
        self._next()

    async def _try(self, one: Waiting) -> float | None:
        """Returns when it is tried again, in seconds since the epoch; None for never."""
        try:
            note = await self._store.run(lambda records: find_note(records, one.id, one.owner))
        except StoreUnavailable:
            return time.time() + DISK_AGAIN_AFTER
        if note is None:
            return None  # its job was deleted
        answered = await self._sender.send(f"msg_{one.id}", note.url, note.body)
        note, delivery = _after(note, answered)
        self.tries["retried" if delivery.state == "waiting" else delivery.state] += 1
        if delivery.state == "failed":
            log.warning("the callback of the job %s is given up: %s", one.id, told(delivery))
        await self._write(one, note, delivery)
        return delivery.next

    async def _write(self, one: Waiting, note: CallbackNote, delivery: Delivery) -> None:
        """Where need be when there is room again: a callback that was taken is not sent again."""
        while True:
            try:
                await self._store.run(lambda records: write_try(records, one.id, one.owner, note, delivery))
            except StoreUnavailable as error:
                log.error("the try of the callback of the job %s waits to be kept: %s", one.id, error)
                await asyncio.sleep(DISK_AGAIN_AFTER)
            else:
                return


def _after(note: CallbackNote, answered: CallbackAnswer) -> tuple[CallbackNote, Delivery]:
    """The callback after a try, on the disk and as it is told."""
    tries = note.tries + 1
    due = time.time() + wait_after(tries, answered.again_after)
    delivery = Delivery(url=note.url, tries=tries, status=answered.status, error=answered.error or None)
    if answered.is_taken:
        delivery.state = "delivered"
    elif answered.status == GONE or due > note.until:
        delivery.state = "failed"
    else:
        delivery.next = due
    return structs.replace(note, tries=tries, due=due), delivery


def told(delivery: Delivery) -> str:
    """The last try in words."""
    return delivery.error or f"its host answers with HTTP {delivery.status}"
