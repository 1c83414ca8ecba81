from __future__ import annotations

import re
from pathlib import Path

import pytest

from msx_protocol import Broken, Dropped, Failed, MetricDeclaration, MetricSample, encode_frame
from tests.backend.fake_torch import NONE_GIVEN
from tests.backend.harness import SERVICES, Worker, lines_of, load_message, serving, wait_until


def test_a_ping_is_answered_while_the_handler_computes(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with serving(tmp_path, "slow") as worker:
        idle = worker.ping()
        assert idle.busy_seconds == 0.0
        worker.predict({"seconds": 600, "mark": str(mark)})
        wait_until(lambda: lines_of(mark))
        first, second = worker.ping(), worker.ping()
        assert 0.0 < first.busy_seconds < second.busy_seconds
        worker.cancel(1)
        worker.receive()
        assert worker.ping().progress == idle.progress + 1


def test_a_ping_while_async_calls_run_tells_the_age_of_the_oldest(tmp_path: Path) -> None:
    old, young = tmp_path / "old", tmp_path / "young"
    with serving(tmp_path, "async_echo") as worker:
        worker.predict({"seconds": 600, "mark": str(old)})
        wait_until(lambda: lines_of(old))
        worker.predict({"seconds": 600, "mark": str(young)})
        wait_until(lambda: lines_of(young))
        both = worker.ping().busy_seconds
        worker.cancel(1)
        worker.receive()
        assert worker.ping().busy_seconds > 0.0
        worker.cancel(2)
        worker.receive()
        assert both > 0.0
        assert worker.ping().busy_seconds == 0.0


def test_a_ping_is_answered_during_the_load(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    code = (
        "import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\ndef handle(data, context): return []"
    )
    (tmp_path / "model" / "h.py").write_text(code)
    with Worker(tmp_path) as worker:
        worker.send(load_message(tmp_path / "model", "h.py"))
        assert worker.receive()[0].phase == "importing the handler"
        assert worker.ping().progress >= 1
        (worker.cwd / "go").touch()
        worker.receive_loaded()


def test_metrics_ride_on_the_pong_once(tmp_path: Path) -> None:
    with serving(tmp_path, "metrics") as worker:
        first = worker.ping()
        assert [(sample.name, sample.value) for sample in first.samples] == [("slots_in_use", 0)]
        assert [(form.name, form.help, form.buckets) for form in first.forms] == [
            ("msx_non_finite_replies", "Replies in which JSON has null for NaN or an infinity", ()),
            ("tokens_total", "", ()),
            ("slots_in_use", "Slots that hold a request", ()),
            ("step_time", "", (1.0, 2.0)),
            ("read_time", "", (1.0, 2.0)),
        ]
        worker.predict("x")
        worker.receive_all(1)
        # PredictionTime is measured after the reply has left, so either of the two may bring it.
        samples = [sample for sample in worker.ping().samples if sample.name != "PredictionTime"]
        second = worker.ping()
        assert [sample for sample in second.samples if sample.name != "PredictionTime"] == []
        assert second.forms == []
    assert [sample.kind for sample in samples] == [
        *("counter", "gauge", "histogram", "histogram", "counter", "gauge", "gauge", "gauge", "counter")
    ]
    assert samples[0] == MetricSample("tokens_total", "counter", "Count", 3.0, [("kind", "prompt")], "id-1")
    read = MetricSample("read_time", "histogram", "Seconds", 3.5, [("disk", "a")], "id-1", (1, 0, 1))
    assert samples[3] == read
    labels = [("ModelName", "m"), ("Level", "Model")]
    assert samples[4] == MetricSample("Calls", "counter", "Count", 1.0, labels, "id-1")


def test_declared_metrics_are_in_the_cache(tmp_path: Path) -> None:
    code = """
def handle(data, context):
    if data is not None:
        context.metrics.get_metric("Size", "histogram").add_or_update(2, ["x"])
        return ["ok"]
"""
    declared = [MetricDeclaration("histogram", "Size", "MB", ["shard"])]
    with serving(tmp_path, code, model_metrics=declared) as worker:
        worker.predict("x")
        worker.receive_all(1)
        sizes = [sample for sample in worker.ping().samples if sample.name == "Size"]
    assert sizes == [MetricSample("Size", "histogram", "Megabytes", 2.0, [("shard", "x")], "id-1")]


def test_lost_metrics_are_told(tmp_path: Path) -> None:
    code = """
def handle(data, context):
    for n in range(int(data[0]["body"])):
        context.metrics.add_counter("x", 1)
    return ["ok"]
"""
    with serving(tmp_path, code) as worker:
        worker.predict("10005")
        worker.receive_all(1)
        assert len(worker.ping().samples) == 10_000
        # PredictionTime may have come before the ping: then it is the sixth that is lost.
        assert re.match("[56] metric samples are lost", worker.logged()[-1]["message"])


def test_log_lines_are_json_with_the_request_id_and_prints_are_plain(tmp_path: Path) -> None:
    code = """
import logging, sys
def handle(data, context):
    if data is None:
        return
    logging.getLogger("anything").warning("library says é")
    context.logger.info("working on %d", len(data))
    print("plain", file=sys.stderr)
    return [1 / 0]
"""
    with serving(tmp_path, code) as worker:
        worker.predict("a", "b")
        worker.receive_all(2)
        library, own, failed = worker.logged()[:3]
    assert library["request_id"] == "id-1,id-2"
    assert (own["level"], own["logger"], own["message"]) == ("INFO", "msx.handler.m", "working on 2")
    assert own["request_id"] == "id-1,id-2"
    assert (failed["level"], failed["message"]) == ("ERROR", "the handler failed")
    assert "ZeroDivisionError" in failed["traceback"]
    assert "plain" in (tmp_path / "stderr").read_text().splitlines()


@pytest.mark.parametrize("socket", ["both", "control"])
def test_the_worker_ends_with_its_frontend_even_in_a_hung_handler(tmp_path: Path, socket: str) -> None:
    mark = tmp_path / "mark"
    with serving(tmp_path, "hang") as worker:
        worker.predict(str(mark))
        wait_until(lambda: lines_of(mark))
        worker.control.close()
        if socket == "both":
            worker.data.close()
        assert worker.exit_status() == 1


@pytest.mark.parametrize("service", ["echo", "async_echo"])
def test_the_end_of_the_data_socket_is_a_drain(tmp_path: Path, service: str) -> None:
    with serving(tmp_path, service) as worker:
        worker.data.close()
        assert worker.exit_status() == 0


def test_a_broken_control_frame_ends_the_worker(tmp_path: Path) -> None:
    with serving(tmp_path, "echo") as worker:
        worker.control.sendall(encode_frame(Dropped(1)))
        assert worker.exit_status() == 1


def test_the_end_before_load(tmp_path: Path) -> None:
    with Worker(tmp_path) as worker:
        worker.close()
        assert worker.exit_status() == 1


def test_children_of_the_handler_do_not_hold_the_sockets(tmp_path: Path) -> None:
    with serving(tmp_path, "leak") as worker:
        worker.predict("x")
        worker.receive_all(1)
        worker.process.kill()
        with pytest.raises((EOFError, ConnectionResetError)):
            worker.receive()


def test_decoding_can_be_switched_off(tmp_path: Path) -> None:
    with serving(tmp_path, "def handle(data, context):\n    return [repr(data[0])]\n", decode_input=False) as worker:
        worker.predict({"x": 1})
        assert worker.receive()[1] == b"{'body': bytearray(b'{\"x\": 1}')}"


@pytest.mark.parametrize("prefix", ["", "async "])
def test_a_worker_keeps_nothing_of_a_large_request(tmp_path: Path, prefix: str) -> None:
    code = f"""
{prefix}def handle(data, context):
    with open("/proc/self/status") as status:
        return [line.split()[1] for line in status if line.startswith("VmRSS")]
"""
    with serving(tmp_path, code) as worker:
        worker.predict(b"x" * (64 << 20))
        large = int(worker.receive()[1])
        worker.predict(b"y")
        small = int(worker.receive()[1])
    assert large > 64 << 10
    assert small < 64 << 10


ASYNC = """
import sys
sys.path.insert(0, SERVICES)
from fake_gpu import Handler as Plain

class Handler(Plain):
    async def handle(self, data, context):
        return super().handle(data, context)
"""


@pytest.mark.parametrize("code", ["fake_gpu", ASYNC.replace("SERVICES", repr(str(SERVICES)))], ids=["batches", "async"])
def test_a_worker_without_its_gpu_asks_to_be_replaced(tmp_path: Path, code: str) -> None:
    """It answers no request of the call: the server does, with the reason. Running out of memory is no such error."""
    with serving(tmp_path, code, torch_devices=[NONE_GIVEN]) as worker:
        worker.predict(b"oom")
        ((_, failure),) = worker.receive_all(1).items()
        assert isinstance(failure[-1], Failed)
        assert failure[-1].status == 507
        worker.predict(b"assert")
        assert worker.receive()[0] == Broken(
            "no call of torch.cuda in its process succeeds after AcceleratorError: CUDA error: device-side assert "
            "triggered"
        )


def test_a_worker_says_that_torch_sees_gpus_that_the_server_does_not_use(tmp_path: Path) -> None:
    with serving(tmp_path, "fake_gpu", torch_devices=[NONE_GIVEN]) as worker:
        warnings = [line["message"] for line in worker.logged() if line["level"] == "WARNING"]
    (warning,) = warnings
    assert warning.startswith("torch sees 1 GPU that the server did not give this worker: ")
