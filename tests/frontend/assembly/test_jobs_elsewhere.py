"""Jobs that the frontend before this one still runs."""

from __future__ import annotations

from typing import cast

import pytest

from msx_frontend.assembly import jobs_elsewhere
from msx_frontend.deferred.runner import DeferredJobs
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.workers.kept_groups import KeptGroups
from tests.loops import run


class Ended:
    """A frontend that has ended."""

    async def ended(self) -> None:
        pass


class Looks:
    """Jobs whose store cannot be read at first."""

    def __init__(self) -> None:
        self.looks: list[bool] = []

    async def look_elsewhere(self, *, over: bool) -> None:
        self.looks.append(over)
        if self.looks.count(True) < 3:
            raise StoreUnavailable("full")


def test_the_last_look_is_one_that_the_store_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_elsewhere, "LOOK_EVERY", 0.001)
    jobs = Looks()
    run(jobs_elsewhere.watch_jobs(cast(DeferredJobs, jobs), cast(KeptGroups, Ended())))
    assert jobs.looks[-3:] == [True] * 3
