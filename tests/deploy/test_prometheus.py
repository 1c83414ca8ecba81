"""Prometheus' own checks of its files, where its promtool is there (Debian: apt-get install prometheus)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


@needs_promtool
@pytest.mark.parametrize(
    "check",
    [
        ["check", "config", "prometheus.yaml"],
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts-test.yaml"],
    ],
)
def test_promtool_accepts(check: list[str]) -> None:
    done = subprocess.run(["promtool", *check], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


def test_most_alerts_have_a_test() -> None:
    rules = {rule["alert"] for rule in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"][0]["rules"]}
    tests = yaml.safe_load((FOLDER / "alerts-test.yaml").read_text())["tests"]
    fires = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one.get("exp_alerts")}
    assert fires <= rules
    assert rules - fires == {"MSXWorkersWaiting", "MSXFirstTokenSlow", "MSXConnectionsShed"}, "plain thresholds"


@needs_promtool
def test_promtool_reads_what_the_dashboard_asks(tmp_path: Path) -> None:
    panels = json.loads((FOLDER.parent / "grafana" / "dashboard.json").read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    rules = [
        {"record": f"panel:{at}", "expr": re.sub(r"\$\w+", "x", one.replace("$__rate_interval", "5m"))}
        for at, one in enumerate(asked)
    ]
    file = tmp_path / "dashboard.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
