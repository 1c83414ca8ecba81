import asyncio
import re
from pathlib import Path

import pytest

from msx_frontend.job import Job
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.metrics.declared import DeclaredMetric, Kind, MetricsSpec
from msx_frontend.metrics.engines import AdapterInfo
from msx_frontend.metrics.family import MOST_SERIES
from msx_frontend.metrics.gathered import MOST
from msx_frontend.metrics.handlers import MOST_METRICS
from msx_frontend.metrics.observer import ObservedDevice, ServerFigures
from msx_frontend.models.versions.states import ModelState
from msx_protocol import MetricSample
from tests.frontend.jobs import make_job
from tests.prometheus import samples

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


class Version:
    labels = ("m", "1.0")

    def gauges(self) -> dict[str, float]:
        return {"msx_queue_depth": 3, "msx_queue_oldest_seconds": 0.5}

    def adapter_info(self) -> AdapterInfo | None:
        return AdapterInfo(("chat", "sql"), ("one",), 4, 1_700_000_000.5)

    def states(self) -> dict[str, bool]:
        return {state.value: state is ModelState.READY for state in ModelState}

    def worker_memory(self) -> list[tuple[str, str, int]]:
        return [("9000", "0", 4096)]

    def device_memory(self) -> list[tuple[str, str, int]]:
        return [("9000", "1", 8192)]


ADAPTERS = "max_lora=4,model=m,running_lora_adapters=chat,sql,version=1.0,waiting_lora_adapters=one"
"""Labels."""


def exposed(metrics: ServerMetrics, *names: str) -> dict[tuple[str, str], float]:
    """Sample name and labels to value."""
    text = asyncio.run(metrics.expose(frozenset(names))).decode()
    return {
        (name, ",".join(f"{k}={labels[k]}" for k in sorted(labels.keys() - {"Hostname"}))): value
        for name, labels, value in samples(text)
    }


def sample(name: str, kind: str = "counter", value: float = 1.0, **labels: str) -> MetricSample:
    return MetricSample(name, kind, "Count", value, sorted(labels.items()))


def handled(metrics: ServerMetrics, samples: list[MetricSample], model: str) -> None:
    """Record samples of the first worker of a version of `model`."""
    ModelMetrics(metrics, model, "1.0").handler_samples(samples, 9000)


def test_every_metric_is_in_the_docs() -> None:
    text = asyncio.run(ServerMetrics().expose()).decode()
    known = set(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))
    page = re.sub(r"The engine's own, .*?\n## ", "", PAGE.read_text(), flags=re.DOTALL)  # a handler's, tested there
    described = set(re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE))
    assert described == known
    assert len(known) > 15


def test_gauges_are_those_of_the_moment() -> None:
    metrics = ServerMetrics()
    metrics.versions.append(Version())
    seen = exposed(metrics)
    assert seen["msx_queue_depth", "model=m,version=1.0"] == 3
    assert seen["msx_model_state", "model=m,state=READY,version=1.0"] == 1
    assert seen["msx_model_state", "model=m,state=FAILED,version=1.0"] == 0
    assert seen["msx_lora_requests_info", ADAPTERS] == 1_700_000_000.5
    assert seen["msx_worker_memory_bytes", "model=m,rank=0,version=1.0,worker=9000"] == 4096
    assert seen["msx_worker_device_memory_bytes", "device=1,model=m,version=1.0,worker=9000"] == 8192
    metrics.versions.clear()
    assert not [name for name, _ in exposed(metrics) if name == "msx_queue_depth"]


def test_devices_have_samples_of_what_their_driver_tells() -> None:
    devices = [ObservedDevice(0, True, 41, {"corrected": 2, "uncorrected": 0}), ObservedDevice(1, False)]
    metrics = ServerMetrics()
    metrics.show(ServerFigures(devices=lambda: devices))
    seen = exposed(metrics)
    assert {(name, labels): value for (name, labels), value in seen.items() if name.startswith("msx_device_")} == {
        ("msx_device_healthy", "device=0"): 1,
        ("msx_device_healthy", "device=1"): 0,
        ("msx_device_temperature_celsius", "device=0"): 41,
        ("msx_device_memory_errors_total", "device=0,kind=corrected"): 2,
        ("msx_device_memory_errors_total", "device=0,kind=uncorrected"): 0,
    }


@pytest.mark.parametrize("name", ["msx_queue_depth", "ts_queue_latency_microseconds"])
def test_some_by_name(name: str) -> None:
    metrics = ServerMetrics()
    metrics.versions.append(Version())
    ModelMetrics(metrics, "m", "1.0")
    metrics.ts_series("ts_queue_latency_microseconds", model_name="m", model_version="default").add(2)
    assert {found for found, _ in exposed(metrics, name)} == {name}


def test_counters_of_torchserve_keep_their_names() -> None:
    metrics = ServerMetrics()
    metrics.ts_series("ts_inference_latency_microseconds", model_name="m", model_version="default").add(1500)
    text = asyncio.run(metrics.expose()).decode()
    assert "# TYPE ts_inference_latency_microseconds counter" in text
    labels = f'model_name="m",model_version="default",hostname="{metrics.hostname}",'
    assert f"ts_inference_latency_microseconds{{{labels}}} 1500.0\n" in text
    assert "ts_inference_latency_microseconds_total" not in text


def test_handler_metrics_of_each_kind() -> None:
    metrics = ServerMetrics()
    slots = sample("slots in use", "gauge", 4, slot="a")
    handled(metrics, [sample("Calls"), sample("Calls"), slots, sample("t", "histogram")], "m")
    seen = exposed(metrics)
    assert seen["Calls", "ModelName=m"] == 2
    assert seen["slots_in_use", "ModelName=m,slot=a"] == 4
    assert seen["t_count", "ModelName=m"] == 1


def test_handlers_of_two_models_do_not_mix() -> None:
    metrics = ServerMetrics()
    handled(metrics, [sample("slots", "gauge", 1)], "a")
    handled(metrics, [sample("slots", "gauge", 2), sample("slots", "gauge", 3, ModelName="a")], "b")
    seen = exposed(metrics)
    assert (seen["slots", "ModelName=a"], seen["slots", "ModelName=b"]) == (3, 2)


@pytest.mark.parametrize(
    "second",
    [sample("Calls", "gauge"), sample("Calls", other="x"), sample("Calls", value=-1), sample("msx_queue_depth")],
)
def test_a_sample_that_does_not_fit_is_left_out(second: MetricSample, caplog: pytest.LogCaptureFixture) -> None:
    metrics = ServerMetrics()
    handled(metrics, [sample("Calls"), second, second], "m")
    assert exposed(metrics)["Calls", "ModelName=m"] == 1
    assert caplog.text.count(f"a sample of the handler metric {second.name!r} was left out") == 1


def test_made_up_names_and_labels_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    metrics = ServerMetrics()
    handled(metrics, [sample("errors", text=str(n)) for n in range(MOST_SERIES + 5)], "m")
    handled(metrics, [sample(f"name_{n}") for n in range(MOST_METRICS + 5)], "m")
    names = [name for name, _ in exposed(metrics)]
    assert names.count("errors") == MOST_SERIES
    assert len([name for name in names if name.startswith("name_")]) == MOST_METRICS - 1
    assert "at most 1000 combinations" in caplog.text


def ended(**times: float) -> Job:
    """A job that arrived 8 s ago."""
    job = make_job()
    job.enqueued -= 8
    for name, seconds in times.items():
        setattr(job, name, job.enqueued + seconds)
    return job


def test_a_job_is_counted_when_it_ends() -> None:
    metrics = ServerMetrics()
    model = ModelMetrics(metrics, "m", "1.0")
    job = ended(started=2, first_chunk=5)
    job.status = 201
    model.jobs_ended([job])
    seen = exposed(metrics)
    labels = "model=m,version=1.0"
    assert seen["msx_requests_total", f"code=201,{labels}"] == 1
    assert seen["msx_queue_seconds_sum", labels] == pytest.approx(2)
    assert seen["msx_first_chunk_seconds_sum", labels] == pytest.approx(5)
    assert seen["msx_request_seconds_sum", labels] == pytest.approx(8, abs=2)


def test_a_job_that_never_ran_waited_to_its_end_and_had_no_chunk() -> None:
    metrics = ServerMetrics()
    ModelMetrics(metrics, "m", "1.0").jobs_ended([ended()])
    seen = exposed(metrics)
    assert seen["msx_queue_seconds_sum", "model=m,version=1.0"] == pytest.approx(8, abs=2)
    assert seen["msx_first_chunk_seconds_count", "model=m,version=1.0"] == 0


def test_torchserve_counts_by_the_version_that_was_asked_for() -> None:
    metrics = ServerMetrics()
    model = ModelMetrics(metrics, "m", "1.0")
    asked, default = ended(started=2), ended(started=2)
    asked.version = "1.0"
    for job in (asked, default, default):
        model.jobs_ended([job])
    seen = {key: value for key, value in exposed(metrics).items() if key[0] == "ts_inference_requests_total"}
    assert {re.findall("model_version=([^,]*)", labels)[0]: value for (_, labels), value in seen.items()} == {
        "1.0": 1,
        "default": 2,
    }


def test_torchserves_times_are_microseconds() -> None:
    metrics = ServerMetrics()
    for _ in range(2):
        ModelMetrics(metrics, "m", "1.0").jobs_ended([ended(started=2)])
    seen = {name: value for (name, _), value in exposed(metrics).items()}
    assert seen["ts_queue_latency_microseconds"] == pytest.approx(4e6)
    assert seen["ts_inference_latency_microseconds"] == pytest.approx(16e6, rel=0.1)


def test_worker_thread_time_is_from_the_queue_to_the_workers_beginning() -> None:
    """Time of a batch with the worker, less the worker's own time for it."""
    metrics = ServerMetrics()
    model = ModelMetrics(metrics, "m", "1.0")
    model.jobs_ended([ended(started=2)])
    model.batch(1, 5.25)
    assert exposed(metrics)["WorkerThreadTime", "Level=Host"] == pytest.approx(750, abs=20)


def test_batches() -> None:
    metrics = ServerMetrics()
    model = ModelMetrics(metrics, "m", "1.0")
    model.batch(4, 0.5)
    model.batch(2, 0.25)
    seen = exposed(metrics)
    assert seen["msx_batch_size_sum", "model=m,version=1.0"] == 6
    assert seen["msx_batch_seconds_sum", "model=m,version=1.0"] == 0.75


def test_some_of_the_process_by_name() -> None:
    names = ("process_resident_memory_bytes", "process_cpu_seconds_total")
    assert {name for name, _ in exposed(ServerMetrics(), *names)} == set(names)


def declared(name: str, kind: Kind, *dimensions: str) -> MetricsSpec:
    return MetricsSpec((), ((kind, DeclaredMetric(name, "Count", dimensions)),))


def test_the_form_is_torchserves() -> None:
    """HELP, TYPE, the order of the labels, the comma behind the last; and declared ones before any sample."""
    metrics = ServerMetrics()
    handled(metrics, [sample("Odd", ModelName='a"b\\c\nd')], "m")
    lines = asyncio.run(metrics.expose()).decode().splitlines()
    at = lines.index("# HELP Requests2XX Torchserve prometheus counter metric with unit: Count")
    assert lines[at + 1] == "# TYPE Requests2XX counter"
    assert lines[at + 2] == f'Requests2XX{{Level="Host",Hostname="{metrics.hostname}",}} 0.0'
    at = lines.index("# HELP GPUUtilization Torchserve prometheus gauge metric with unit: Percent")
    assert lines[at + 1 : at + 3][1].startswith("# HELP"), "no sample yet"
    assert f'Odd{{ModelName="a\\"b\\\\c\\nd",Hostname="{metrics.hostname}",}} 1.0' in lines
    assert "# TYPE msx_requests_total counter" in lines
    assert [line for line in lines if line.startswith("process_open_fds ")]


def test_a_declared_metric_of_handlers_has_what_was_declared() -> None:
    metrics = ServerMetrics("prometheus", declared("Tokens", "histogram", "colour"))
    handled(metrics, [sample("Tokens", "counter", 3, colour="x"), sample("Tokens", colour="x", ModelName="m")], "m")
    text = asyncio.run(metrics.expose()).decode()
    assert "# TYPE Tokens histogram" in text
    assert f'Tokens_count{{colour="x",Hostname="{metrics.hostname}",}} 2.0' in text


@pytest.mark.parametrize("labels", [{}, {"colour": "x", "other": "y"}])
def test_a_sample_without_the_declared_dimensions(labels: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    metrics = ServerMetrics("prometheus", declared("Tokens", "counter", "colour"))
    handled(metrics, [sample("Tokens", "counter", 1.0, **labels)] * 2, "m")
    assert not [name for name, _ in exposed(metrics) if name == "Tokens"]
    assert caplog.text.count("'Tokens' was left out: it has the labels ['colour', 'Hostname']") == 1


@pytest.mark.parametrize(
    ("mode", "auto_detect", "counted"),
    [(None, None, True), (None, False, False), ("prometheus", None, False), ("prometheus", True, True)],
)
def test_metrics_that_are_not_declared(
    mode: str | None, auto_detect: bool | None, counted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = ServerMetrics(mode, auto_detect=auto_detect)
    handled(metrics, [sample("New"), sample("msx_llm_running", "gauge")], "m")
    names = {name for name, _ in exposed(metrics)}
    assert ("New" in names) is counted
    assert "msx_llm_running" in names, "the engine's own"
    assert ("metrics_config does not declare it" in caplog.text) is not counted


def test_metrics_of_the_server_that_are_not_declared() -> None:
    metrics = ServerMetrics("prometheus", MetricsSpec((("counter", DeclaredMetric("Mine", "Count", ("odd",))),), ()))
    model = ModelMetrics(metrics, "m", "1.0")
    model.jobs_ended([ended(started=2)])
    model.batch(1, 1)
    model.worker_loaded(9000, 1)
    metrics.replied(200)
    text = asyncio.run(metrics.expose()).decode()
    assert "# TYPE Mine counter" in text
    assert not [line for line in text.splitlines() if line.startswith(("Requests", "ts_", "QueueTime", "Worker"))]


def test_many_jobs_of_many_models_are_added_up() -> None:
    """Whatever is gathered in between: two models, both versions asked for, each status."""
    metrics = ServerMetrics()
    models = [ModelMetrics(metrics, name, "1.0") for name in "ab"]
    count = 3 * MOST + 5
    for number in range(count):
        job = ended(first_chunk=5, **({"started": 2} if number % 5 else {}))
        job.status, job.version = (200, 503)[number % 3 == 0], ("1.0", None)[number % 2]
        models[number % 7 == 0].jobs_ended([job])
        models[number % 7 == 0].batch(1 + number % 2, 0.25)
    seen = exposed(metrics)
    assert not metrics.gathered.jobs
    for name, chosen in (("a", [n for n in range(count) if n % 7]), ("b", range(0, count, 7))):
        labels = f"model={name},version=1.0"
        good = [n for n in chosen if n % 3]
        assert seen["msx_requests_total", f"code=200,{labels}"] == len(good)
        assert seen["msx_requests_total", f"code=503,{labels}"] == len(chosen) - len(good)
        assert seen["msx_first_chunk_seconds_sum", labels] == pytest.approx(5 * len(chosen))
        assert seen["msx_queue_seconds_bucket", f"le=2.5,{labels}"] == len([n for n in chosen if n % 5])
        assert seen["msx_batch_size_sum", labels] == sum(1 + n % 2 for n in chosen)
        assert seen["msx_batch_seconds_sum", labels] == 0.25 * len(chosen)
    totals = {key: value for key, value in seen.items() if key[0] == "ts_inference_requests_total"}
    assert sum(totals.values()) == count
    assert len(totals) == 4


def test_gauges_tell_of_the_last_job() -> None:
    metrics = ServerMetrics()
    first, second = (ModelMetrics(metrics, name, "1.0") for name in "ab")
    for model, wait in ((first, 1), (second, 2), (first, 3)):
        model.jobs_ended([ended(started=wait)])
    assert exposed(metrics)["QueueTime", "Level=Host"] == pytest.approx(3000, abs=1)


def test_a_model_that_is_registered_again_counts_on() -> None:
    metrics = ServerMetrics()
    for _ in range(2):
        model = ModelMetrics(metrics, "m", "1.0")
        model.jobs_ended([ended(started=2)])
        assert model.statistics.fail.count + model.statistics.success.count == 1
    seen = exposed(metrics)
    assert seen["msx_request_seconds_count", "model=m,version=1.0"] == 2
    assert [value for key, value in seen.items() if key[0] == "ts_inference_requests_total"] == [2]
