"""Functions in processes of their own: what comes back, and what happens when one of them ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import psutil
import pytest

from msx_mindspore_serving.servables.function_pool import FunctionPool
from msx_sdk.errors import HandlerLoadError
from msx_sdk.testing import LocalModel
from tests.compat.mindspore_serving.packages.servables import write
from tests.compat.mindspore_serving.servables.calling import call, served

SOURCE = """
import os, sys, threading
def look(x):
    if x == -1:
        os._exit(3)
    if x == -2:
        return chr(0xd800)
    if x == -3:
        raise ValueError(chr(0xd800))
    return os.getpid() * 1000 + int(x)
@register_method("y")
def m(x):
    y = add_stage(look, x, outputs_count=1)
    return y
def both(instances):
    threading.Thread(target=threading.Event().wait, daemon=False).start()
    return [len(instances)] * len(instances)
@register_method("y")
def n(x):
    y = add_stage(look, x, outputs_count=1)
    z = add_stage(both, y, outputs_count=1, batch_size=3)
    return z
"""


def pool_of(model: LocalModel) -> FunctionPool:
    pool = model.handler.owner._pool
    assert isinstance(pool, FunctionPool)
    return pool


def test_instances_are_divided(tmp_path: Path) -> None:
    with served(tmp_path, SOURCE, functionProcesses=2) as model:
        pids = pool_of(model).pids
        answers = [answer["y"].item() for answer in call(model, "m", [{"x": np.array(n)} for n in range(8)])]
        assert [answer % 1000 for answer in answers] == list(range(8))
        assert {answer // 1000 for answer in answers} == set(pids)
        sizes = [answer["y"].item() for answer in call(model, "n", [{"x": np.array(n)} for n in range(7)])]
        assert sorted(sizes) == [1] + [3] * 6
    assert not any(map(psutil.pid_exists, pids)), "threads of functions hold nothing up"


def test_a_process_that_ends_fails_what_it_has(tmp_path: Path) -> None:
    failed = "Call Function 'add.look' Failed, method: 'm', stage index(begin with 1): 1, error msg: "
    with served(tmp_path, SOURCE, functionProcesses=1) as model:
        (first,) = pool_of(model).pids
        ended = ("3", f"{failed}the process of the function has ended with status 3")
        assert call(model, "m", [{"x": np.array(n)} for n in (1, -1)]) == [ended, ended]
        (second,) = pool_of(model).pids
        assert second != first
        assert call(model, "m", [{"x": np.array(7)}])[0]["y"].item() == second * 1000 + 7
        os.kill(second, signal.SIGKILL)
        os.waitid(os.P_PID, second, os.WEXITED | os.WNOWAIT)
        assert call(model, "m", [{"x": np.array(7)}])[0]["y"].item() % 1000 == 7


def test_texts_that_are_not_utf_8(tmp_path: Path) -> None:
    failed = "Call Function 'add.look' Failed, method: 'm', stage index(begin with 1): 1, error msg: "
    for processes in (0, 1):
        with served(tmp_path, SOURCE, functionProcesses=processes) as model:
            result, raised = call(model, "m", [{"x": np.array(n)} for n in (-2, -3)])
        assert result[1].startswith(f"{failed}Push py task result cause exception: 'utf-8' codec can't encode")
        assert raised == ("3", f"{failed}?")


def test_a_servable_that_its_processes_cannot_import(tmp_path: Path) -> None:
    source = "import sys\nif 'pytest' not in sys.modules:\n    {}\n" + SOURCE
    for line, words in [
        ("raise ValueError('not here')", "import add.servable_config failed, not here"),
        ("import os; os._exit(4)", "a function process has ended with status 4 while it imported the servable"),
    ]:
        with pytest.raises(HandlerLoadError, match=words), served(tmp_path, source.format(line), functionProcesses=2):
            pass


def test_a_servable_that_can_no_longer_be_imported(tmp_path: Path) -> None:
    with served(tmp_path, SOURCE, functionProcesses=1) as model:
        write(tmp_path, "raise ValueError('changed')")
        first = call(model, "m", [{"x": np.array(-1)}])
        assert "has ended with status 3" in first[0][1]
        assert call(model, "m", [{"x": np.array(1)}]) == [("3", "import add.servable_config failed, changed")]
        write(tmp_path, SOURCE)
        assert call(model, "m", [{"x": np.array(1)}])[0]["y"].item() % 1000 == 1
