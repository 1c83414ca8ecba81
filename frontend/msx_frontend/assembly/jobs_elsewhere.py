"""Deferred jobs that the frontend before this one still runs."""

import asyncio

from msx_frontend.deferred.runner import DeferredJobs
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.workers.kept_groups import KeptGroups

LOOK_EVERY = 1.0
"""Seconds between two looks at the store, in which it writes their ends."""


async def watch_jobs(jobs: DeferredJobs, kept: KeptGroups) -> None:
    """Look until that frontend has ended; what it has not ended then runs here."""
    ended, over = asyncio.ensure_future(kept.ended()), False
    while not over:
        await asyncio.wait({ended}, timeout=LOOK_EVERY)
        is_last = ended.done()
        try:
            await jobs.look_elsewhere(over=is_last)
            over = is_last
        except StoreUnavailable:
            await asyncio.sleep(LOOK_EVERY)
