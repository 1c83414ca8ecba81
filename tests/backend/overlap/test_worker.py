"""A worker process that overlaps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msx_protocol import Chunk
from tests.backend.harness import serving

BATCHES = 200


def test_a_worker_goes_over_to_overlap_when_its_steps_are_long_enough(tmp_path: Path) -> None:
    with serving(tmp_path, "three_steps", config={"overlap": True}) as worker:
        assert (worker.loaded.overlap, worker.loaded.sequential) == (True, "")
        for number in range(BATCHES):
            worker.predict({"n": number})
        replies = sorted((json.loads(body) for body in chunks(worker)), key=lambda reply: reply[0]["n"])
    assert [reply[0]["n"] for reply in replies] == [*range(BATCHES)]
    assert all(reply[1] == reply[-1] for reply in replies)
    assert replies[0][2:5] == ["MainThread"] * 3
    assert ["ahead", "MainThread"] in [reply[2:4] for reply in replies]  # and back, where a machine is that busy


@pytest.mark.parametrize("config", [{}, {"overlap": False}])
def test_a_users_handler_that_does_not_ask_for_it_does_not_overlap(tmp_path: Path, config: dict[str, Any]) -> None:
    with serving(tmp_path, "three_steps", config=config) as worker:
        assert not worker.loaded.overlap
        assert worker.loaded.sequential == (
            "model-config.yaml has overlap: false"
            if config
            else "neither model-config.yaml nor the class ThreeSteps says overlap"
        )


def test_overlap_that_has_no_effect_is_a_warning(tmp_path: Path) -> None:
    with serving(tmp_path, "echo", config={"overlap": True}) as worker:
        worker.predict("a")
        worker.receive()
    assert "overlap: true has no effect: its handle() is not that of a base class" in worker.stderr.read_text()


def chunks(worker: Any) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < BATCHES:
        message, body = worker.receive()
        if isinstance(message, Chunk):
            found.append(body)
    return found


def test_lone_requests_stay_on_one_thread(tmp_path: Path) -> None:
    with serving(tmp_path, "three_steps", config={"overlap": True}) as worker:
        for number in range(20):
            worker.predict({"n": number})
            assert json.loads(worker.receive()[1])[2:5] == ["MainThread"] * 3
