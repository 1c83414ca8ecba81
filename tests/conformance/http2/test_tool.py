"""h2spec itself, where it is installed: what `scripts/h2spec` makes of its report, and a whole run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.conformance.http2.tool import CLEAR_TEXT, PREFACE, TLS, read_report, run_all

REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="3.5. HTTP/2 Connection Preface" package="http2/3.5" tests="2" errors="1">
    <testcase package="http2/3.5" classname="Sends client connection preface" time="0.0015"></testcase>
    <testcase package="http2/3.5" classname="Sends invalid connection preface" time="0.0157">
      <error>Connection closed
Error: unexpected EOF</error>
    </testcase>
  </testsuite>
  <testsuite name="6.1. DATA" package="http2/6.1" tests="2" skipped="1" failures="1">
    <testcase package="http2/6.1" classname="One" time="0"><failure>DATA Frame
Timeout</failure></testcase>
    <testcase package="http2/6.1" classname="Two" time="0"><skipped></skipped></testcase>
  </testsuite>
</testsuites>
"""


def test_a_report() -> None:
    report = read_report(REPORT)
    assert report == (4, ["http2/6.1: Two"], [PREFACE, "http2/6.1: One"])
    assert report.faults({PREFACE: "why"}) == ["failed: http2/6.1: One", "skipped: http2/6.1: Two"]
    assert report.faults({"a: b": "why", PREFACE: "why", "http2/6.1: One": "why"}) == [
        "skipped: http2/6.1: Two",
        "passes, and is among those that may fail: a: b",
    ]
    assert read_report("<testsuites/>").faults({}) == ["no case was run"]


def test_what_it_is_asked() -> None:
    command = TLS[-1].command("h2spec", "127.0.0.1:7070", Path("r"), tls=True)
    assert command[:4] == ["h2spec", "--strict", "-h", "127.0.0.1"]
    assert command[-2:] == ["--tls", "--insecure"]
    assert CLEAR_TEXT[0].command("h2spec", "http://127.0.0.1:8080", Path("r"), tls=False)[4:8] == [
        "-p",
        "8080",
        "-P",
        "/livez",
    ]


@pytest.mark.long
@pytest.mark.e2e
def test_the_suite_itself(tmp_path: Path) -> None:
    tool = shutil.which(os.environ.get("H2SPEC", "h2spec"))
    if tool is None:
        pytest.skip("h2spec is not installed: scripts/h2spec --how says how to build it")
    found = {listener.name: report.faults(listener.known) for listener, report in run_all(tool, tmp_path)}
    assert found == {listener.name: [] for listener in (*CLEAR_TEXT, *TLS)}
