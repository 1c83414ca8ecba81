from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from msx_sdk.metrics import Metrics
from msx_torchserve.packages.ts.metrics import system_metrics
from msx_torchserve.packages.ts.metrics.caching_metric import CachingMetric
from msx_torchserve.packages.ts.metrics.dimension import Dimension
from msx_torchserve.packages.ts.metrics.metric import Metric
from msx_torchserve.packages.ts.metrics.metric_abstract import MetricAbstract
from msx_torchserve.packages.ts.metrics.metric_cache_errors import MetricsCacheKeyError
from msx_torchserve.packages.ts.metrics.metric_cache_yaml_impl import MetricsCacheYamlImpl
from msx_torchserve.packages.ts.metrics.metric_encoder import MetricEncoder
from msx_torchserve.packages.ts.metrics.metric_type_enum import MetricTypes
from msx_torchserve.packages.ts.metrics.metrics_store import MetricsStore
from msx_torchserve.packages.ts.metrics.process_memory_metric import check_process_mem_usage
from msx_torchserve.packages.ts.metrics.unit import Units
from msx_torchserve.packages.ts.service import emit_metrics

LINE = re.compile(
    r"\s*([\w\s]+)\.([\w\s]+):([0-9\-,.e]+)\|#([^|]*)(\|#type:([^|,]+))?\|#hostname:([^,]+),([^,]+)(,(.*))?"
)
"""How TorchServe reads the lines of its workers."""


def test_dimension() -> None:
    dimension = Dimension("a", "b")
    assert (str(dimension), dimension.to_dict()) == ("a:b", {"Name": "a", "Value": "b"})


def test_units() -> None:
    units = Units().units
    assert [units[name] for name in ("ms", "percent", "kB", "", None)] == [
        "Milliseconds",
        "Percent",
        "Kilobytes",
        "unit",
        "unit",
    ]


def test_one_metric(capsys: pytest.CaptureFixture[str]) -> None:
    metric = Metric("Time", 1.5, "ms", [Dimension("a", "b"), Dimension("c", "d")], "id-1", "counter")
    metric.update(2)
    emit_metrics([metric])
    line = capsys.readouterr().out.strip()
    assert line.startswith("[METRICS]")
    found = LINE.fullmatch(line.removeprefix("[METRICS]"))
    assert found
    assert (found[1], found[2], found[3], found[4], found[10]) == ("Time", "Milliseconds", "3.5", "a:b,c:d", "id-1")
    told = json.loads(json.dumps([metric], cls=MetricEncoder))[0]
    assert (told["MetricName"], told["Value"], told["RequestId"]) == ("Time", 3.5, "id-1")
    assert told["Dimensions"][0] == {"Name": "a", "Value": "b"}
    metric.reset()
    assert metric.value == 0


def test_a_metric_of_its_own(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    metric = CachingMetric("Size", "MB", ["a", "b"], MetricTypes.GAUGE)
    assert isinstance(metric, MetricAbstract)
    metric.add_or_update(2, ["x", "y"], "id-1")
    metric.update(3, "id-2", [Dimension("c", "z")])
    metric.add_or_update(4, ["too few"])
    first, second = capsys.readouterr().out.split()
    found = LINE.fullmatch(first.removeprefix("[METRICS]"))
    assert found
    assert (found[1], found[2], found[3], found[4], found[6]) == ("Size", "Megabytes", "2.0", "a:x,b:y", "GAUGE")
    assert found[10] == "id-1"
    assert "|#c:z|#type:GAUGE|" in second
    assert "metric Size has the dimensions ['a', 'b'], got ['too few']" in caplog.text


def test_what_the_context_returns_is_one() -> None:
    assert isinstance(Metrics("m").add_metric_to_cache("Size", "MB"), MetricAbstract)


def test_a_cache_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "metrics.yaml").write_text(
        "model_metrics:\n  histogram:\n    - name: Size\n      unit: MB\n      dimensions: [a]\n"
    )
    cache = MetricsCacheYamlImpl(tmp_path / "metrics.yaml")
    cache.initialize_cache()
    metric = cache.get_metric("Size", MetricTypes.HISTOGRAM)
    assert (metric.unit, metric.dimension_names) == ("MB", ["a"])
    assert cache.cache[MetricTypes.HISTOGRAM]["Size"] is metric
    assert "histogram:Size" in cache.cache_keys
    with pytest.raises(MetricsCacheKeyError, match="the counter 'Size' does not exist"):
        cache.get_metric("Size")


def test_the_older_store() -> None:
    store = MetricsStore({0: "id"}, "m")
    store.add_counter("Calls", 2)
    assert [(sample.name, sample.value) for sample in store.store] == [("Calls", 2.0)]


def test_the_memory_of_processes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    check_process_mem_usage(io.StringIO(f"{os.getpid()},,99999999\n"))
    (own, missing, none) = caplog.messages
    assert own == f"{os.getpid()}:{own.partition(':')[2]}"
    assert int(own.partition(":")[2]) > 1 << 20
    assert "99999999" in missing
    assert none == "99999999:0"


class FakeNvml:
    """Two GPUs, of which the second gives no utilisation."""

    class NVMLError(Exception): ...

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        return number

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(used=1 << 30, total=4 << 30)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        if handle == 1:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(gpu=50)


def test_figures_of_gpus(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the names of those that the server takes itself."""
    taken: list[Metric] = []
    monkeypatch.setattr(system_metrics, "system_metrics", taken)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    system_metrics.gpu_utilization(0)
    assert taken == []
    system_metrics.gpu_utilization(2)
    assert [str(metric).rpartition("|#hostname")[0] for metric in taken] == [
        "GPUMemoryUtilization.Percent:25.0|#Level:Host,DeviceId:0",
        "GPUMemoryUsed.Megabytes:1024.0|#Level:Host,DeviceId:0",
        "GPUUtilization.Percent:50|#Level:Host,DeviceId:0",
        "GPUMemoryUtilization.Percent:25.0|#Level:Host,DeviceId:1",
        "GPUMemoryUsed.Megabytes:1024.0|#Level:Host,DeviceId:1",
    ]
    assert caplog.messages == ["GPU 1 cannot be measured: Not Supported"]


def test_figures_of_a_script(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of its module are called, and what they added is logged behind an end."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(system_metrics, "system_metrics", [])
    module = ModuleType("mine")
    exec("def one(): pass\ndef gpu_utilization(number): seen.append(number)\ndef _private(x): pass", module.__dict__)
    module.__dict__["seen"] = seen = list[int]()
    system_metrics.collect_all(module, 2)
    assert (seen, caplog.messages) == ([2], [""])
    caplog.clear()
    system_metrics.collect_all(system_metrics)
    assert len(caplog.messages) == 8
    assert re.match(r"CPUUtilization\.Percent:[\d.]+\|#Level:Host\|#hostname:", caplog.messages[0])
