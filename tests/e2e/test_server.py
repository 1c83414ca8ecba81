"""Questions that tests ask a running server in many places."""

from __future__ import annotations

from typing import Any

from tests.e2e.server import replaced


def version(state: str, **workers: dict[str, Any]) -> dict[str, Any]:
    return {"state": state, "workers": list(workers.values())}


def test_a_worker_is_replaced_when_all_serve_and_each_has_another_process() -> None:
    """The process of a READY worker has ended where it has none: its end is told when its output has been read."""
    other, new = {"status": "READY", "pid": 1}, {"status": "READY", "pid": 3}
    assert replaced(version("READY", a=other, b=new), 2)
    assert not replaced(version("READY", a=other, b={"status": "READY", "pid": 2}), 2)
    assert not replaced(version("READY", a=other, b={"status": "READY"}), 2)
    assert not replaced(version("READY", a=other, b={"status": "RESTARTING"}), 2)
    assert not replaced(version("DEGRADED", a=other, b=new), 2)
