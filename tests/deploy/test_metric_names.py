"""Dashboards and alert rules name metrics and labels that the server has: one that is renamed fails here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.exposed import OF_SCRAPES, exposed, without_samples
from tests.deploy.promql import Selector, grouped, selectors

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
RULES = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())
TESTS = yaml.safe_load((DEPLOY / "prometheus" / "alerts-test.yaml").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLE = re.compile(r"label_values\((.+), (\w+)\)")


def expressions() -> Iterator[tuple[str, str]]:
    """Where, and the expression."""
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for group in RULES["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for test in TESTS["tests"]:
        for series in test["input_series"]:
            yield test["name"], series["series"]


def unknown(expression: str) -> set[str]:
    """Names that the server does not have."""
    found = list(selectors(expression))
    wrong = {one.metric for one in found if one.metric not in exposed()}
    known = frozenset().union(*(exposed().get(one.metric, frozenset()) for one in found)) | OF_SCRAPES
    for one in found:
        wrong |= {
            f"{one.metric}{{{label}}}" for label in one.labels - exposed().get(one.metric, frozenset()) - OF_SCRAPES
        }
    return wrong | {label for label in grouped(expression) if label not in known}


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_its_names_exist(where: str, expression: str) -> None:
    assert list(selectors(expression)), where
    assert unknown(expression) == set(), where


def test_variables_of_the_dashboard() -> None:
    for variable in DASHBOARD["templating"]["list"][1:]:
        found = VARIABLE.fullmatch(variable["query"]["query"])
        assert found, variable
        (one,) = selectors(found[1])
        assert unknown(found[1]) == set()
        assert found[2] in exposed()[one.metric] | OF_SCRAPES
    named = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD["panels"])))
    assert used - {"__rate_interval"} <= named


def test_legends_name_labels_of_their_expression() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            left = grouped(target["expr"]) or set().union(*(exposed()[one.metric] for one in selectors(target["expr"])))
            assert labels <= left | OF_SCRAPES, panel["title"]


def test_what_rules_say_names_labels_that_they_have() -> None:
    for rule in (rule for group in RULES["groups"] for rule in group["rules"]):
        (first, *_) = selectors(rule["expr"])
        named = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        assert named <= exposed()[first.metric] | OF_SCRAPES, rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning")


def test_panels_stand_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at: dict[str, Any] = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_every_metric_that_the_server_has_is_known_here() -> None:
    assert without_samples() == set(), "tests/deploy/exposed.py gives each metric a sample: give these one, too"


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("sum by (model) (rate(msx_request_total[5m])) > 0.05", {"msx_request_total", "model"}),
        ('msx_queue_depth{modell="m"}', {"msx_queue_depth{modell}"}),
        ("sum by (modell) (msx_queue_depth)", {"modell"}),
        ("msx_request_seconds > 1", {"msx_request_seconds"}),
        ('up{job=~".*msx.*"} == 0 and on (job) msx_gone unless msx_queue_depth offset 5m', {"msx_gone"}),
    ],
)
def test_a_wrong_name_is_seen(expression: str, wrong: set[str]) -> None:
    assert unknown(expression) == wrong


def test_selectors() -> None:
    text = 'histogram_quantile(0.99, sum by (le, m) (rate(a_bucket{b=~"$x,y{",c!="d"}[5m]))) / on (m) group_left () b:c'
    assert list(selectors(text)) == [Selector("a_bucket", frozenset({"b", "c"})), Selector("b:c", frozenset())]
    assert grouped(text) == {"le", "m"}
