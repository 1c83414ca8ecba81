"""`mindspore_serving.log`: where the lines of servables and scripts go."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_mindspore_serving.packages.mindspore_serving import log


@pytest.fixture(autouse=True)
def _as_at_the_start() -> Iterator[None]:
    log._logger.cache_clear()
    yield
    log._logger.cache_clear()


def test_lines_of_a_script_go_to_stderr(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from mindspore_serving import log as logger\n"
        "logger.debug('hidden')\n"
        "logger.info('%s of %s', 1, 2)\n"
        "logger.error('both')\n"
    )
    done = subprocess.run(
        [sys.executable, script], env={**os.environ, "GLOG_v": "1"}, capture_output=True, text=True, check=True
    )
    form = r"\[{}\] SERVING\(\d+:\d+,MainProcess\):\d{{4}}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{{3}} \[{}:{}\] {}\n"
    wanted = form.format("INFO", script, 3, "1 of 2") + form.format("ERROR", script, 4, "both")
    assert re.fullmatch(wanted, done.stderr)


def test_lines_of_a_worker_are_the_server_s_records(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GLOG_v", raising=False)
    log.info("hidden")
    log.warning("a %s", "b")
    assert [(one.name, one.levelname, one.getMessage(), one.filename) for one in caplog.records] == [
        ("mindspore_serving", "WARNING", "a b", "test_log.py")
    ]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("level", ["0", "1", "2", "3"])
def test_the_level(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setenv("GLOG_v", level)
    assert log.get_level() == level
    assert log.get_log_config() == {"GLOG_v": level, "GLOG_logtostderr": "1"}


def test_a_wrong_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOG_v", "5")
    with pytest.raises(ValueError, match=r"^Incorrect log level:5, Please check the configuration of GLOG_v or GLOG_"):
        log.error("a")
