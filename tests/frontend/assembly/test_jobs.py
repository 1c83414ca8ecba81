"""Jobs as the keys of the configuration bound them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from msx_frontend.assembly import jobs
from msx_frontend.config import ServerConfig
from msx_frontend.store.store import Store


@pytest.mark.parametrize(
    "keys", [{"jobs": False}, {"jobs": True, "jobs_at_once": 3, "jobs_days": 2.0, "max_jobs": 7, "jobs_size": 99}]
)
def test_jobs_are_bounded_by_their_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any]) -> None:
    given: list[Any] = []
    store = Store(tmp_path / "store.db")
    monkeypatch.setattr(jobs, "JobBook", lambda store, *bounds: given.extend(bounds))
    monkeypatch.setattr(jobs, "DeferredJobs", lambda book, at_once, *more: given.append(at_once))
    jobs.deferred_jobs(ServerConfig(**keys), store, None)
    assert given == ([2.0, 7, 99, 3] if keys["jobs"] else [])
    store.close()


def test_callbacks_are_bounded_by_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(jobs, "read_secrets", lambda path: [str(path)])
    monkeypatch.setattr(jobs, "Signer", given.append)
    monkeypatch.setattr(jobs, "AllowedHosts", lambda hosts: given.append(hosts))
    monkeypatch.setattr(jobs, "CallbackSender", lambda hosts, signer, timeout: given.append(timeout))
    monkeypatch.setattr(jobs, "Callbacks", lambda store, sender, hosts, most: given.append(most))
    keys: Any = {"callback_hosts": ("hooks.example",), "callback_secrets": Path("/s"), "callback_timeout": 3.0}
    jobs._callbacks(ServerConfig(**keys, max_callbacks=7), cast(Store, None))
    assert given == [("hooks.example",), ["/s"], 3.0, 7]
    assert jobs._callbacks(ServerConfig(callback_hosts=("hooks.example",)), cast(Store, None)) is None
