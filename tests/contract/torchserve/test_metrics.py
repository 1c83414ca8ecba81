"""The exposition, its modes, the metric logs, metrics.yaml, lines printed by handlers, system metrics.

contract#metrics
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.torchserve.setup import Setup, serving
from tests.e2e.server import RunningServer, wait_until

pytestmark = pytest.mark.e2e

HOST = socket.gethostname()

PRINTS = """
def handle(data, context):
    context.metrics.add_counter("Calls", 1, 0, [type("Dimension", (), {"name": "Colour", "value": "red"})])
    context.metrics.add_time("HandlerTime", 1.5, None, "ms")
    context.metrics.add_metric_to_cache("Cached", "count", ["ModelName"], "gauge").add_or_update(4, ["prints"])
    print("[METRICS]Printed.Count:2.0|#ModelName:prints,Level:Model|#type:GAUGE|#hostname:%s,1795198064,id" % HOST)
    print("said besides")
    return ["done" for _ in data]
""".replace("HOST", repr(HOST))

COMMAND = f"""{sys.executable} -c 'print("CPUUtilization.Percent:12.5|#Level:Host|#hostname:{HOST},1795198064")'"""


def prints(store: Path) -> None:
    folder = store / "prints"
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "h.py").write_text(PRINTS)
    (folder / "MAR-INF" / "MANIFEST.json").write_text('{"model": {"modelName": "prints", "handler": "h.py:handle"}}')


def setup(properties: str = "") -> Setup:
    return Setup(services=("echo",), prepare=prints, load=("echo.mar", "prints"), properties=properties)


SERVER = setup("metrics_mode=prometheus\nmodel_metrics_auto_detect=true\nmetric_time_interval=1\n")


def page(server: RunningServer, *names: str) -> str:
    return server.metrics.get("/metrics", params=[("name[]", name) for name in names]).text


def shown(server: RunningServer, line: str) -> None:
    """A line of the exposition; `line` is a regular expression."""
    pattern = re.compile(f"^{line}$", re.MULTILINE)
    wait_until(lambda: pattern.search(page(server)), f"{line} is exposed", lambda: page(server))


@pytest.fixture(scope="module")
def used(server: RunningServer) -> RunningServer:
    """After two good requests, one with a version, a bad one, and one to each of the other listeners."""
    server.predict("echo", b"x")
    server.predict("echo/1.0", b"x")
    server.predict("absent", b"x")
    server.predict("prints", b"x")
    return server


# -- the endpoint --


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/metrics", "/metrics/any/sub/path"])
def test_any_method_and_sub_path(used: RunningServer, method: str, path: str) -> None:
    reply = used.metrics.request(method, path)
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "# HELP Requests2XX " in reply.text


def test_some_by_name(used: RunningServer) -> None:
    text = page(used, "Requests2XX", "QueueTime")
    assert set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)) == {"Requests2XX", "QueueTime"}
    assert page(used, "no_such_metric") == ""


DECLARED = {
    "Requests2XX": ("counter", "Count"),
    "Requests4XX": ("counter", "Count"),
    "Requests5XX": ("counter", "Count"),
    "ts_inference_requests_total": ("counter", "Count"),
    "ts_inference_latency_microseconds": ("counter", "Microseconds"),
    "ts_queue_latency_microseconds": ("counter", "Microseconds"),
    "QueueTime": ("gauge", "Milliseconds"),
    "WorkerThreadTime": ("gauge", "Milliseconds"),
    "WorkerLoadTime": ("gauge", "Milliseconds"),
    "CPUUtilization": ("gauge", "Percent"),
    "MemoryUsed": ("gauge", "Megabytes"),
    "MemoryAvailable": ("gauge", "Megabytes"),
    "MemoryUtilization": ("gauge", "Percent"),
    "DiskUsage": ("gauge", "Gigabytes"),
    "DiskAvailable": ("gauge", "Gigabytes"),
    "DiskUtilization": ("gauge", "Percent"),
    "GPUMemoryUtilization": ("gauge", "Percent"),
    "GPUMemoryUsed": ("gauge", "Megabytes"),
    "GPUUtilization": ("gauge", "Percent"),
    "HandlerTime": ("gauge", "ms"),
    "PredictionTime": ("gauge", "ms"),
}


@pytest.mark.parametrize("name", DECLARED)
def test_declared_metrics_are_there_before_any_sample(server: RunningServer, name: str) -> None:
    kind, unit = DECLARED[name]
    expected = f"# HELP {name} Torchserve prometheus {kind} metric with unit: {unit}\n# TYPE {name} {kind}\n"
    assert expected in page(server)


@pytest.mark.parametrize(
    "line",
    [
        rf'Requests2XX\{{Level="Host",Hostname="{HOST}",\}} [1-9]\S*',
        rf'Requests4XX\{{Level="Host",Hostname="{HOST}",\}} [1-9]\S*',
        rf'Requests5XX\{{Level="Host",Hostname="{HOST}",\}} \S+',
        rf'ts_inference_requests_total\{{model_name="echo",model_version="default",hostname="{HOST}",\}} [1-9]\S*',
        rf'ts_inference_requests_total\{{model_name="echo",model_version="1\.0",hostname="{HOST}",\}} [1-9]\S*',
        rf'ts_inference_latency_microseconds\{{model_name="echo",model_version="default",hostname="{HOST}",\}} \S+',
        rf'ts_queue_latency_microseconds\{{model_name="echo",model_version="default",hostname="{HOST}",\}} \S+',
        rf'QueueTime\{{Level="Host",Hostname="{HOST}",\}} \S+',
        rf'WorkerThreadTime\{{Level="Host",Hostname="{HOST}",\}} \S+',
        rf'WorkerLoadTime\{{WorkerName="W-9\d\d\d-echo_1\.0",Level="Host",Hostname="{HOST}",\}} \S+',
        rf'PredictionTime\{{ModelName="echo",Level="Model",Hostname="{HOST}",\}} \S+',
        rf'HandlerTime\{{ModelName="prints",Level="Model",Hostname="{HOST}",\}} 1\.5',
        rf'Calls\{{Colour="red",ModelName="prints",Level="Model",Hostname="{HOST}",\}} [1-9]\S*',
        rf'Cached\{{ModelName="prints",Hostname="{HOST}",\}} 4\.0',
        rf'Printed\{{ModelName="prints",Level="Model",Hostname="{HOST}",\}} 2\.0',
        rf'CPUUtilization\{{Level="Host",Hostname="{HOST}",\}} \S+',
        rf'MemoryUsed\{{Level="Host",Hostname="{HOST}",\}} [1-9]\S*',
        rf'DiskAvailable\{{Level="Host",Hostname="{HOST}",\}} \S+',
    ],
)
def test_a_sample(used: RunningServer, line: str) -> None:
    """Labels in the order of metrics.yaml, a comma behind the last."""
    shown(used, line)


def test_what_a_handler_prints_as_a_metric_is_not_logged(used: RunningServer) -> None:
    wait_until(lambda: "said besides" in used.log.read_text(), "the other line is there", used.tail)
    assert "[METRICS]" not in used.log.read_text()


# -- modes and files --


@pytest.fixture(scope="module", params=["log", "legacy"])
def logging_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp(f"s05-{request.param}")
    with serving(setup(f"metrics_mode={request.param}\n"), folder) as running:
        running.predict("echo", b"x", headers={"x-request-id": "246eeb2e-c144-4324-b937-003b83df3bc5"})
        running.predict("prints", b"x")
        yield running


def lines(server: RunningServer, name: str, wanted: str) -> list[str]:
    """Lines of a metric log, when one of them has been written that has `wanted` in it."""
    path = server.folder / "logs" / name
    wait_until(lambda: path.exists() and wanted in path.read_text(), f"{wanted} is in {name}", server.tail)
    return path.read_text().splitlines()


def is_log_mode(server: RunningServer) -> bool:
    return "metrics_mode=log" in (server.folder / "config.properties").read_text()


def test_the_page_of_the_logging_modes(logging_server: RunningServer) -> None:
    reply = logging_server.metrics.get("/metrics")
    assert reply.status_code == 200
    exposed = set(re.findall(r"^# TYPE (\S+)", reply.text, re.MULTILINE))
    ts = {"ts_inference_requests_total", "ts_inference_latency_microseconds", "ts_queue_latency_microseconds"}
    assert exposed == (set() if is_log_mode(logging_server) else ts)


def test_the_servers_log(logging_server: RunningServer) -> None:
    lines(logging_server, "ts_metrics.log", "WorkerThreadTime")
    found = lines(logging_server, "ts_metrics.log", "Requests2XX")
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3}"
    line = re.compile(rf"{moment} - Requests2XX\.Count:1\.0\|#Level:Host\|#hostname:{HOST},timestamp:\d{{10}}")
    assert [one for one in found if line.fullmatch(one)]
    names = {one.split(" - ")[1].partition(".")[0] for one in found}
    assert {"QueueTime", "WorkerThreadTime", "WorkerLoadTime", "CPUUtilization", "DiskUsage"} <= names
    assert ("ts_inference_requests_total" in names) is is_log_mode(logging_server)


def test_the_models_log(logging_server: RunningServer) -> None:
    lines(logging_server, "model_metrics.log", "HandlerTime")
    found = lines(logging_server, "model_metrics.log", "246eeb2e")
    predicted = re.compile(
        rf"\S+ - PredictionTime\.ms:\S+\|#ModelName:echo,Level:Model\|#hostname:{HOST},"
        r"requestID:246eeb2e-c144-4324-b937-003b83df3bc5,timestamp:\d{10}"
    )
    assert [one for one in found if predicted.fullmatch(one)]
    assert not [one for one in found if "Printed" in one], "not declared, not detected"
    wait_until(lambda: "metrics_config does not declare it" in logging_server.log.read_text(), "a warning is there")


def test_the_console_has_them_too(logging_server: RunningServer) -> None:
    lines(logging_server, "ts_metrics.log", "Requests2XX")
    wait_until(
        lambda: [line for line in logging_server.log_lines() if line.get("logger") == "TS_METRICS"],
        "they are mirrored",
        logging_server.tail,
    )


def test_metrics_location_metrics_yaml_and_the_command(tmp_path: Path) -> None:
    config = tmp_path / "metrics.yaml"
    config.write_text(
        "dimensions: [&level Level]\n"
        "ts_metrics:\n  gauge:\n    - {name: CPUUtilization, unit: Percent, dimensions: [*level, Hostname]}\n"
        "model_metrics:\n  histogram:\n    - {name: Printed, unit: Count, dimensions: [ModelName, *level]}\n"
    )
    properties = f"metrics_mode=log\nmetrics_config={config}\nsystem_metrics_cmd={COMMAND}\n"
    elsewhere = tmp_path / "elsewhere"
    given = setup(properties)
    given = Setup(
        given.services, given.load, given.prepare, properties=properties, env={"METRICS_LOCATION": str(elsewhere)}
    )
    with serving(given, tmp_path) as server:
        server.predict("prints", b"x")
        wait_until(lambda: (elsewhere / "model_metrics.log").exists(), "it is there", server.tail)
        wait_until(lambda: (elsewhere / "ts_metrics.log").exists(), "it is there", server.tail)
    told = (elsewhere / "ts_metrics.log").read_text()
    assert set(re.findall(r" - (\w+)\.", told)) == {"CPUUtilization"}
    assert f"CPUUtilization.Percent:12.5|#Level:Host|#hostname:{HOST}," in told
    assert set(re.findall(r" - (\w+)\.", (elsewhere / "model_metrics.log").read_text())) == {"Printed"}


def test_without_the_listener_and_without_system_metrics(tmp_path: Path) -> None:
    properties = "enable_metrics_api=false\ndisable_system_metrics=true\nmetrics_mode=log\n"
    (tmp_path / "store").mkdir()
    with serving(Setup(properties=properties), tmp_path) as server:
        assert server.info["metrics"] is None
        server.inference.get("/ping")
    assert "CPUUtilization" not in (tmp_path / "logs" / "ts_metrics.log").read_text()


def test_without_a_mode_everything_is_on_the_listener(tmp_path: Path) -> None:
    """Ours: TorchServe's default is `log`."""
    with serving(setup(), tmp_path) as server:
        server.predict("prints", b"x")
        shown(server, rf'Printed\{{ModelName="prints",Level="Model",Hostname="{HOST}",\}} 2\.0')
        assert server.metric("Requests2XX") > 0
    assert [(tmp_path / "logs" / f"{name}_metrics.log").read_text() for name in ("ts", "model")] == ["", ""]
