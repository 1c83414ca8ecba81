"""TorchServe's lines about calls that were not answered."""

import logging

import pytest

from msx_frontend.workers import group_end
from msx_frontend.workers.torchserve_lines import UnansweredCalls


def test_calls_in_a_row(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    late, other = group_end.no_response(1.0), group_end.asked_to_stop()
    calls = UnansweredCalls()
    for end, answered in (
        (late, 0),
        (other, 0),
        (late, 0),
        (group_end.load_too_slow(1.0, ""), 0),
        (late, 3),
        (late, 3),
    ):
        calls.group_ended(end, answered, {"model": "m", "worker": 9000})
    said = [record.getMessage() for record in caplog.records]
    assert said == [f"Number or consecutive unsuccessful inference {number}" for number in (1, 2, 3, 1, 2)]
    assert {(one.name, one.levelname, one.__dict__["worker"]) for one in caplog.records} == {
        ("org.pytorch.serve.wlm.WorkerThread", "ERROR", 9000)
    }
