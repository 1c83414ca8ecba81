"""The checks against servers that do as they should, and as they should not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gpu_check import archives, checks
from tests.gpu_check.bench import Bench
from tests.gpu_check.fakes import RIGHT, UUIDS, FakeCards, FakeServer, bench
from tests.gpu_check.page import FailedError, NotRunError


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives and the CPU's output are torch's; the limit of time is not worth waiting for."""
    for name in ("rows", "picture", "sums"):
        monkeypatch.setattr(archives, name, lambda *arguments: arguments)
    monkeypatch.setattr(archives, "png", lambda: b"")
    monkeypatch.setattr(checks, "_difference", lambda output: 0.0)
    monkeypatch.setattr(checks, "GIVEN_BACK", 0.01)


def on_a_gpu(*answers: dict[str, Any], used: tuple[int, ...] = (), count: int = 2) -> Bench:
    return bench(FakeServer(*answers), FakeCards(*used, count=count), UUIDS[0])


def test_a_handler_that_computes_on_its_gpu_passes() -> None:
    made = bench(FakeServer(RIGHT), FakeCards())
    assert checks.custom_handler(made).startswith(f"cuda:0, gpu_id 0, CUDA_VISIBLE_DEVICES {UUIDS[0]}; loaded in ")
    assert made.gpu == UUIDS[0], "whose memory later checks read"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"device": "cpu"}, "the output's device: 'cpu' where 'cuda:0' is right"),
        ({"gpu_id": None}, "gpu_id: None where 0 is right"),
        ({"gpus": 2}, r"device_count\(\) of the worker: 2 where 1 is right"),
        ({"visible": None}, "CUDA_VISIBLE_DEVICES is None, and not one UUID"),
        ({"visible": "0"}, "'0', and not one UUID"),
        ({"visible": ",".join(UUIDS)}, "and not one UUID"),
    ],
)
def test_a_handler_that_does_not_fails(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(FailedError, match=message):
        checks.custom_handler(on_a_gpu({**RIGHT, **wrong}))


def test_simulated_gpus_have_no_uuid() -> None:
    answer = {**RIGHT, "device": "cpu", "visible": "0", "gpus": 0}
    assert checks.custom_handler(bench(FakeServer(answer), None)).startswith("cpu, gpu_id 0, CUDA_VISIBLE_DEVICES 0; ")


def test_a_classifiers_best_class_is_the_place_where_it_computed() -> None:
    assert checks.image_classifier(on_a_gpu({"cuda:0": 0.9, "cpu": 0.1})).startswith("cuda:0 (0.90)")
    with pytest.raises(FailedError, match="the best class, which says where it computed: 'cpu'"):
        checks.image_classifier(on_a_gpu({"cuda:0": 0.1, "cpu": 0.9}))


def described(usage: str, kind: str = "gpu") -> FakeServer:
    return FakeServer(RIGHT, described={"deviceType": kind, "workers": [{"gpu": True, "gpuUsage": usage}]})


def test_describe_has_figures_of_a_gpu() -> None:
    usage = "gpuId::0 utilization.gpu [%]::7 % utilization.memory [%]::2 % memory.used [MiB]::900 MiB"
    assert usage in checks.describe(bench(described(usage), FakeCards()))
    with pytest.raises(FailedError, match="gpuUsage is 'N/A', and has no figures"):
        checks.describe(bench(described("N/A"), FakeCards()))
    assert checks.describe(bench(described("N/A"), None))
    with pytest.raises(FailedError, match="deviceType: 'cpu' where 'gpu' is right"):
        checks.describe(bench(described("N/A", "cpu"), None))


BOTH = [{**RIGHT, "pid": 11}, {**RIGHT, "pid": 12}]


def test_two_workers_share_a_gpu() -> None:
    answers = [BOTH[number % 2] for number in range(16)]
    assert checks.two_workers(on_a_gpu(*answers, used=(500, 2100))).endswith("; 800 MiB of the GPU each")
    with pytest.raises(FailedError, match="their places"):
        checks.two_workers(on_a_gpu(*answers[:15], {**RIGHT, "pid": 12, "visible": UUIDS[1]}, used=(500, 2100)))
    with pytest.raises(FailedError, match="a worker that holds 256 MiB takes 50 MiB of the GPU"):
        checks.two_workers(on_a_gpu(*answers, used=(500, 600)))


def test_memory_of_a_killed_worker_is_given_back() -> None:
    assert "2100 MiB of the GPU before, 2110 MiB after" in checks.kill_and_return(on_a_gpu(RIGHT, used=(2100, 2110)))
    with pytest.raises(AssertionError, match="2100 MiB are used again, as before"):
        checks.kill_and_return(on_a_gpu(RIGHT, used=(2100, 2900)))


def test_memory_of_workers_that_end_is_given_back() -> None:
    assert (
        checks.memory_after_unregistering(on_a_gpu(RIGHT, used=(2100, 500)))
        == "2100 MiB of the GPU before, 500 MiB after"
    )
    with pytest.raises(AssertionError, match="the memory of two workers is given back"):
        checks.memory_after_unregistering(on_a_gpu(RIGHT, used=(2100, 2000)))


SUM = {"sum": 3.0, "device": "cuda:0", "backend": "nccl", "world": 2, "visible": ",".join(UUIDS), "milliseconds": 0.4}


def test_a_group_sums_by_nccl() -> None:
    assert checks.group_of_two(on_a_gpu(SUM)).endswith("an all-reduce of 64 MiB takes 0.40 ms at best of 10")
    with pytest.raises(FailedError, match=r"the sum of 1 and 2 over the ranks: 1\.0 where 3\.0 is right"):
        checks.group_of_two(on_a_gpu({**SUM, "sum": 1.0}))
    with pytest.raises(FailedError, match="the number of GPUs that a rank sees: 1 where 2 is right"):
        checks.group_of_two(on_a_gpu({**SUM, "visible": UUIDS[0]}))


def test_what_a_machine_cannot_answer_is_not_run() -> None:
    with pytest.raises(NotRunError, match="it takes two GPUs, and here is one"):
        checks.group_of_two(on_a_gpu(SUM, count=1))
    for check in (checks.metrics, checks.memory_after_unregistering):
        with pytest.raises(NotRunError, match="simulated GPUs have no memory"):
            check(bench(FakeServer(RIGHT), None))
    with pytest.raises(NotRunError, match="no worker has said which GPU it has"):
        checks.memory_after_unregistering(bench(FakeServer(RIGHT), FakeCards()))
