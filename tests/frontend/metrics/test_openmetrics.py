"""Metrics for clients that ask for OpenMetrics, read by prometheus_client's own strict parser."""

from __future__ import annotations

import asyncio
import re
from math import inf, nan

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.metrics.exposition import exposition
from msx_frontend.metrics.negotiation import wants_openmetrics
from msx_frontend.metrics.openmetrics import openmetrics
from msx_protocol import MetricSample
from tests.prometheus import samples

Told = dict[str, tuple[str, str]]


def metrics_of(*told: MetricSample, mode: str | None = None) -> ServerMetrics:
    metrics = ServerMetrics(mode)
    ModelMetrics(metrics, "m", "1.0").handler_samples(list(told), 9000)
    return metrics


def sample(name: str, kind: str, value: float = 1.0, **labels: str) -> MetricSample:
    return MetricSample(name, kind, "ms", value, sorted(labels.items()))


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


def parsed(metrics: ServerMetrics, *names: str) -> Told:
    """Type and unit of each family. All samples must be those of the other format."""
    wanted = frozenset(names)
    text = asyncio.run(metrics.expose(wanted, openmetrics)).decode()
    families = list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
    found = {(one.name, *sorted(one.labels.items())): repr(one.value) for family in families for one in family.samples}
    plain = asyncio.run(metrics.expose(wanted)).decode()
    expected = {
        (name, *((label, unescaped(text)) for label, text in sorted(labels.items()))): repr(value)
        for name, labels, value in samples(plain)
    }
    assert found.keys() <= expected.keys()
    assert all(value == expected[key] for key, value in found.items() if not str(key[0]).startswith("process_"))
    return {family.name: (family.type, family.unit) for family in families}


def test_all_families_of_the_server() -> None:
    metrics = ServerMetrics()
    metrics.requests.labels("m", "1.0", "200").inc()
    metrics.request_seconds.labels("m", "1.0").observe(0.2)
    metrics.ts_series("ts_inference_requests_total", model_name='a"b\\c\nd', model_version="default").add(1.0)
    metrics.replied(200)
    told = parsed(metrics)
    assert told["msx_requests"] == ("counter", "")
    assert told["msx_request_seconds"] == ("histogram", "seconds")
    assert told["msx_queued_bytes"] == ("gauge", "bytes")
    assert told["process_cpu_seconds"] == ("counter", "seconds")
    assert told["ts_inference_requests"] == ("counter", "")
    assert told["Requests2XX"] == ("unknown", ""), "OpenMetrics would rename it if it were a counter"
    text = asyncio.run(metrics.expose(form=openmetrics)).decode()
    assert len([line for line in text.splitlines() if line.startswith("Requests2XX{")]) == 1


@pytest.mark.parametrize(
    ("told", "families"),
    [
        ([sample("Calls", "counter")], {"Calls": "unknown"}),
        ([sample("calls_total", "counter")], {"calls": "counter"}),
        ([sample("calls_total", "counter"), sample("calls", "gauge")], {"calls_total": "unknown", "calls": "gauge"}),
        (
            [sample("a_total", "counter"), sample("a_created_total", "counter")],
            {"a": "counter", "a_created_total": "unknown"},
        ),
        ([sample("_total", "counter")], {"_total": "unknown"}),
        ([sample("level_total", "gauge", nan)], {"level_total": "gauge"}),
        ([sample("time", "histogram", value) for value in (0.1, 3, inf)], {"time": "histogram"}),
        ([sample("time", "histogram", -5)], {"time": "histogram"}),
        ([sample("odd", "gauge", 1, **{"a:b": "x", "__name__": "y", "c.d": 'q"\\\n'})], {"odd": "gauge"}),
    ],
)
def test_metrics_of_handlers(told: list[MetricSample], families: dict[str, str]) -> None:
    metrics = metrics_of(*told)
    without = parsed(ServerMetrics())
    assert {name: kind for name, (kind, _) in parsed(metrics).items() if name not in without} == families


@pytest.mark.parametrize(
    "told",
    [sample("calls", "counter", nan), sample("time", "histogram", nan), sample("time", "histogram", le="1")],
)
def test_what_no_format_can_tell_is_left_out(told: MetricSample, caplog: pytest.LogCaptureFixture) -> None:
    found = parsed(metrics_of(told))
    assert found.get(told.name) in (None, ("unknown", ""), ("histogram", ""))
    assert "was left out" in caplog.text


def test_parts_of_a_histogram_that_are_asked_for_by_name() -> None:
    metrics = metrics_of(sample("time", "histogram"))
    assert parsed(metrics, "time_sum", "time_count") == {"time_count": ("unknown", ""), "time_sum": ("unknown", "")}
    assert parsed(metrics, "msx_queued_bytes") == {"msx_queued_bytes": ("gauge", "bytes")}


def test_nothing_to_tell_ends_nevertheless() -> None:
    assert asyncio.run(ServerMetrics("log").expose(form=openmetrics)) == b"# EOF\n"
    assert asyncio.run(ServerMetrics("log").expose()) == b""
    assert openmetrics(CollectorRegistry()) == b"# EOF\n"
    assert exposition(CollectorRegistry()) == b""


PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "open_one"),
    [
        ("", False),
        ("*/*", False),
        ("application/*", False),
        ("text/html, */*;q=0.1", False),
        ("application/openmetrics-text", True),
        ('Application/OpenMetrics-Text; Version="1.0.0"; charset=utf-8', True),
        ("application/openmetrics-text;version=0.0.1", False),
        ("application/openmetrics-text;version=2.0.0", False),
        (PROMETHEUS_2, True),
        (PROMETHEUS_3, True),
        ("text/plain, application/openmetrics-text;q=0.5", False),
        ("text/plain;q=0.5, application/openmetrics-text;q=0.5", True),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=2", False),
        ("application/openmetrics-text;q=abc", False),
        ("application/openmetrics-text;q=0.2, */*;q=0.9", False),
        ("text/plain;version=1.0.0, application/openmetrics-text;q=0.3", True),
        (",;,;q=,=", False),
    ],
)
def test_negotiation(accept: str, open_one: bool) -> None:
    assert wants_openmetrics(accept) == open_one
