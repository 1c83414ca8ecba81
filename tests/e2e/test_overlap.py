"""A model that overlaps, under load: every client gets its own answer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = pytest.mark.e2e

REQUESTS = 400


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("overlap")
    store = new_store(folder)
    config = "batchSize: 4\njobQueueSize: 1000\noverlap: true\nminWorkers: 1\nmaxWorkers: 1"
    pack_service("three_steps", store, config=config)
    pack_service("three_steps", store, model="sequential", config="batchSize: 4\njobQueueSize: 1000")
    with run_server(folder, "--models", "three_steps.mar", "sequential.mar") as running:
        yield running


def replies(server: RunningServer, model: str) -> list[Any]:
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda number: server.predict(model, {"n": number}), range(REQUESTS)))
    assert {answer.status_code for answer in answers} == {200}
    return [answer.json() for answer in answers]


def test_every_client_gets_its_own_answer(server: RunningServer) -> None:
    seen = replies(server, "three_steps")
    assert [reply[0]["n"] for reply in seen] == [*range(REQUESTS)]
    assert all(reply[1] == reply[-1] for reply in seen)  # each step knows the request by its id
    assert {reply[3] for reply in seen} == {"MainThread"}
    assert "ahead" in {reply[2] for reply in seen}


def test_a_handler_that_does_not_ask_for_it_stays_on_one_thread(server: RunningServer) -> None:
    assert {tuple(reply[2:5]) for reply in replies(server, "sequential")} == {("MainThread",) * 3}


def test_describe_says_so(server: RunningServer) -> None:
    assert server.describe("three_steps")["overlap"] == {"enabled": True}
    reason = "neither model-config.yaml nor the class ThreeSteps says overlap"
    assert server.describe("sequential")["overlap"] == {"enabled": False, "reason": reason}
