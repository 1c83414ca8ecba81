import logging
import re
from pathlib import Path

import pytest

from msx_frontend.logs.rotating import KEPT, RotatingFile
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.metrics.family import MetricFamily
from msx_frontend.metrics.log import AT_ONCE, MetricLine, MetricLog, MetricLogs
from msx_protocol import MetricSample
from tests.frontend.jobs import make_job
from tests.frontend.metrics.test_server import exposed, sample
from tests.loops import run


def logged(tmp_path: Path, mode: str) -> tuple[ServerMetrics, dict[str, list[str]], list[str]]:
    """After a request of everything: the metrics, the lines of both files without their time, and the console's."""
    mirrored: list[str] = []

    async def test() -> ServerMetrics:
        logs = MetricLogs(tmp_path, lambda name, lines: mirrored.extend(f"{name} {line.text}" for line in lines))
        metrics = ServerMetrics(mode, auto_detect=True, logs=logs)
        logs.start()
        model = ModelMetrics(metrics, "m", "1.0")
        job = make_job()
        job.started, job.status, job.id = job.enqueued, 200, "id-1"
        model.jobs_ended([job])
        model.batch(1, 0.001)
        model.worker_loaded(9000, 0.5)
        predicted = MetricSample("PredictionTime", "gauge", "Milliseconds", 0.65, [("Level", "Model")], "id-1")
        model.handler_samples([predicted, sample("Calls", Level="Model")], 9000)
        metrics.replied(404)
        await logs.close()
        return metrics

    metrics = run(test())
    lines: dict[str, list[str]] = {}
    for path in sorted(tmp_path.glob("*.log")):
        for line in path.read_text().splitlines():
            match = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} - (.*,timestamp:\d{10})", line)
            assert match, line
            lines.setdefault(path.stem, []).append(match[1].rpartition(",timestamp")[0])
    return metrics, lines, mirrored


def names(lines: list[str]) -> set[str]:
    return {line.partition(".")[0] for line in lines}


def test_log_mode(tmp_path: Path) -> None:
    metrics, lines, mirrored = logged(tmp_path, "log")
    host = f"|#hostname:{metrics.hostname}"
    assert f"Requests4XX.Count:1.0|#Level:Host{host}" in lines["ts_metrics"]
    assert f"WorkerLoadTime.Milliseconds:500.0|#WorkerName:W-9000-m_1.0,Level:Host{host}" in lines["ts_metrics"]
    assert f"ts_inference_requests_total.Count:1.0|#model_name:m,model_version:default{host}" in lines["ts_metrics"]
    assert {"QueueTime", "WorkerThreadTime"} < names(lines["ts_metrics"])
    predicted, counted = lines["model_metrics"]
    assert predicted == f"PredictionTime.ms:0.65|#ModelName:m,Level:Model{host},requestID:id-1"
    assert counted == f"Calls.Count:1.0|#ModelName:m,Level:Model{host}"
    assert len(mirrored) == len(lines["ts_metrics"]) + 2
    assert mirrored[-1].startswith("MODEL_METRICS Calls.Count:1.0|")
    assert exposed(metrics) == {}


def test_legacy_mode(tmp_path: Path) -> None:
    metrics, lines, _ = logged(tmp_path, "legacy")
    assert {name for name, _ in exposed(metrics)} == {
        "ts_inference_requests_total",
        "ts_inference_latency_microseconds",
        "ts_queue_latency_microseconds",
    }
    assert exposed(metrics, "ts_queue_latency_microseconds", "QueueTime", "msx_requests_total").keys() == {
        key for key in exposed(metrics) if key[0] == "ts_queue_latency_microseconds"
    }
    assert not [name for name in names(lines["ts_metrics"]) if name.startswith("ts_")]
    assert names(lines["model_metrics"]) == {"PredictionTime", "Calls"}


@pytest.mark.parametrize("mode", ["prometheus", None])
def test_without_logs(mode: str | None) -> None:
    metrics = ServerMetrics(mode)
    metrics.replied(200)
    metrics.replied(307)
    metrics.replied(499)
    assert exposed(metrics)["Requests2XX", "Level=Host"] == 2
    assert exposed(metrics)["Requests4XX", "Level=Host"] == 1


def test_a_file_that_cannot_be_written_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.ERROR):
        with pytest.raises(NotADirectoryError):
            (tmp_path / "file" / "x").stat()
        log = RotatingFile(tmp_path / "file" / "x.log")
        log.write("a\n")
        log.write("b\n")
    assert caplog.text.count("cannot be written") == 1


def test_a_file_that_is_full_is_moved_aside(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "x.log", most_bytes=10)
    for number in range(KEPT + 3):
        file.write(f"line {number}\n")
    file.close()
    assert (tmp_path / "x.log").read_text() == f"line {KEPT + 2}\n"
    assert len(list(tmp_path.iterdir())) == KEPT + 1


def test_a_log_is_there_before_its_first_line(tmp_path: Path) -> None:
    log = MetricLog(tmp_path / "figures" / "x.log", "X")
    assert (tmp_path / "figures" / "x.log").read_text() == ""
    log.close()
    assert (tmp_path / "figures" / "x.log").read_text() == ""


def test_many_lines_are_written_in_slices_and_in_order(tmp_path: Path) -> None:
    slices: list[list[MetricLine]] = []
    log = MetricLog(tmp_path / "x.log", "X", lambda name, lines: slices.append(lines))
    series = MetricFamily("T", "gauge", "ms", ("Hostname",), None, log).series(("vm",))
    for number in range(2 * AT_ONCE + 1):
        series.add(number)
    log.close()
    assert [len(lines) for lines in slices] == [AT_ONCE, AT_ONCE, 1]
    values = re.findall(r" - T\.ms:(.*)\|#\|#hostname:vm", (tmp_path / "x.log").read_text())
    assert values == [f"{number}.0" for number in range(2 * AT_ONCE + 1)]


def test_what_a_handler_says_has_no_terminal_escapes(tmp_path: Path) -> None:
    log = MetricLog(tmp_path / "x.log", "X")
    MetricFamily("T", "gauge", "ms", ("Level",), None, log).series(("\x1b[2J",)).add(1)
    log.close()
    assert "|#Level:\\x1b[2J" in (tmp_path / "x.log").read_text()
