"""The number of threads of a rank, which MindSpore lets a process set once."""

from pathlib import Path

import pytest

from tests.core.mindspore_parallel.ranks import config, needs_mindspore, run_ranks

pytestmark = [pytest.mark.mindspore, pytest.mark.collectives, needs_mindspore]


def test_a_group_whose_yaml_gives_the_threads_starts(tmp_path: Path) -> None:
    assert len(run_ranks("meeting", tmp_path, config(1, 2, mindspore={"threads": 1}))) == 2
