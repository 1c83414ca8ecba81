"""The checks of `scripts/gpu-check`. Each is a row of the page, and returns its figures."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.e2e.server import wait_until
from tests.gpu_check import archives
from tests.gpu_check.bench import Bench
from tests.gpu_check.machine import torch_of_workers
from tests.gpu_check.page import FailedError, NotRunError, expect

UUID = re.compile(r"(?:GPU|MIG)-[0-9a-f-]{36}")
ROW = [number / 16 for number in range(16)]
MEGABYTES = 256
"""Memory that a worker of the checks of memory holds, beside what CUDA itself takes."""
SLACK = 64
"""MiB by which the use of a GPU may differ that is the same."""
GIVEN_BACK = 20.0
"""Seconds within which the driver has taken back what an ended process had."""
DIFFERENCE = 1e-2
"""A GPU multiplies float32 by TF32, which has ten bits after the point, and sums in another order."""


def torch_with_cuda(bench: Bench) -> str:
    version, cuda, works, count = torch_of_workers()
    if bench.cards and not works:
        why = f"was built with CUDA {cuda}, which does not run on this driver" if cuda else "was built without CUDA"
        raise FailedError(
            f"torch {version} {why}: install another in .venv, as `.venv/bin/pip install --force-reinstall torch "
            "--index-url https://download.pytorch.org/whl/cu126`"
        )
    return f"torch {version}, CUDA {cuda}, {count} GPUs"


def custom_handler(bench: Bench) -> str:
    """As TorchServe's users write it: the device by gpu_id; its worker sees one GPU, by UUID."""
    seconds = bench.register(archives.rows(bench.folder, "rows"))
    answer = bench.ask("rows", {"row": ROW})
    expect(answer["device"], bench.device, "the output's device")
    expect(answer["gpu_id"], 0, "gpu_id")
    difference = _difference(answer["output"])
    if bench.cards:
        expect(answer["gpus"], 1, "torch.cuda.device_count() of the worker")
        if not UUID.fullmatch(answer["visible"] or ""):
            raise FailedError(f"CUDA_VISIBLE_DEVICES is {answer['visible']!r}, and not one UUID")
    bench.gpu = answer["visible"]
    median = bench.milliseconds("rows", {"row": ROW})
    return (
        f"{answer['device']}, gpu_id {answer['gpu_id']}, CUDA_VISIBLE_DEVICES {answer['visible']}; "
        f"loaded in {seconds:.1f} s, {median:.1f} ms a request; differs by {difference:.1e} from the CPU"
    )


def image_classifier(bench: Bench) -> str:
    """TorchServe's own, on a small CNN whose best class is the place where it computed."""
    return _classifier(bench, "picture", archives.picture, archives.png())


def text_classifier(bench: Bench) -> str:
    """TorchServe's own, on a bag of embeddings, likewise."""
    return _classifier(bench, "words", archives.words, "one bag of a few words")


def describe(bench: Bench) -> str:
    described = bench.server.describe("rows")
    (worker,) = described["workers"]
    expect(described["deviceType"], "gpu", "deviceType")
    expect(worker["gpu"], True, "workers[].gpu")
    if bench.cards and "%" not in worker["gpuUsage"]:
        raise FailedError(f"gpuUsage is {worker['gpuUsage']!r}, and has no figures")
    return f"deviceType gpu, gpuUsage `{worker['gpuUsage']}`"


def metrics(bench: Bench) -> str:
    used = bench.used()
    known = wait_until(lambda: bench.server.metric("GPUMemoryUsed"), "GPUMemoryUsed has a sample")
    healthy = bench.server.metric("msx_device_healthy", device="0")
    expect(healthy, 1.0, "msx_device_healthy")
    return f"GPUMemoryUsed {known:.0f} MB over all GPUs, where NVML has {used} MiB of this one; healthy"


def two_workers(bench: Bench) -> str:
    before = bench.used() if bench.cards else 0
    archive = archives.rows(bench.folder, "pair", "deviceIds: [0]\n", MEGABYTES if bench.cards else 1)
    bench.register(archive, workers=2)
    pids = set(bench.server.worker_pids("pair"))
    expect(len(pids), 2, "the number of workers")
    places = _places(bench, pids)
    expect({(one["device"], one["visible"]) for one in places}, {(bench.device, bench.gpu)}, "their places")
    if not bench.cards:
        return f"{len(places)} answers of both; simulated GPUs have no memory"
    each = (bench.used() - before) // 2
    if each < MEGABYTES:
        raise FailedError(f"a worker that holds {MEGABYTES} MiB takes {each} MiB of the GPU")
    return f"{len(places)} answers of both; {each} MiB of the GPU each"


def kill_and_return(bench: Bench) -> str:
    """SIGKILL of one of the two: another one comes, and what the first one had of the GPU is given back."""
    before = bench.used() if bench.cards else 0
    killed, began = bench.server.worker_pids("pair")[0], time.monotonic()
    bench.server.kill_worker(killed, "pair")
    seconds = time.monotonic() - began
    expect(bench.ask("pair", {"row": ROW})["device"], bench.device, "the device of an answer after it")
    if not bench.cards:
        return f"back after {seconds:.1f} s; simulated GPUs have no memory"
    wait_until(lambda: abs(bench.used() - before) <= SLACK, f"{before} MiB are used again, as before", limit=GIVEN_BACK)
    return f"back after {seconds:.1f} s; {before} MiB of the GPU before, {bench.used()} MiB after"


def memory_after_unregistering(bench: Bench) -> str:
    """Two workers less: what each has held is free again."""
    before = bench.used()
    bench.unregister("pair")
    wait_until(
        lambda: before - bench.used() >= 2 * MEGABYTES, "the memory of two workers is given back", limit=GIVEN_BACK
    )
    return f"{before} MiB of the GPU before, {bench.used()} MiB after"


def group_of_two(bench: Bench) -> str:
    """`parallelType: tp` with the keys of `torchrun`: torch.distributed by the variables that torchrun sets."""
    if bench.cards and bench.cards.count < 2:
        raise NotRunError("it takes two GPUs, and here is one")
    seconds = bench.register(archives.sums(bench.folder))
    answer = bench.ask("sums", b"")
    expect(answer["sum"], 3.0, "the sum of 1 and 2 over the ranks")
    expect(answer["device"], bench.device, "the device of rank 0")
    expect(answer["backend"], "nccl" if bench.cards else "gloo", "the backend")
    expect(len(answer["visible"].split(",")), 2, "the number of GPUs that a rank sees")
    milliseconds = [bench.ask("sums", b"")["milliseconds"] for _ in range(10)]
    return (
        f"{answer['backend']} sums over {answer['world']} ranks; loaded in {seconds:.1f} s; an all-reduce of 64 MiB "
        f"takes {min(milliseconds):.2f} ms at best of 10"
    )


CHECKS: Mapping[str, Callable[[Bench], str]] = {
    "torch with CUDA": torch_with_cuda,
    "a handler of one's own": custom_handler,
    "`image_classifier`": image_classifier,
    "`text_classifier`": text_classifier,
    "describe API": describe,
    "metrics": metrics,
    "two workers on a GPU": two_workers,
    "a worker that is killed": kill_and_return,
    "memory of workers that end": memory_after_unregistering,
    "a group of two ranks": group_of_two,
}
"""In their order, by the names of the page: later ones use the models of earlier ones."""


def _classifier(bench: Bench, model: str, packed: Callable[[Any], Any], body: Any) -> str:
    seconds = bench.register(packed(bench.folder))
    answer = bench.ask(model, body)
    best = max(answer, key=lambda place: answer[place])
    expect(best, bench.device, "the best class, which says where it computed")
    return f"{best} ({answer[best]:.2f}); loaded in {seconds:.1f} s, {bench.milliseconds(model, body):.1f} ms a request"


def _difference(output: Sequence[float]) -> float:
    """From what the same weights make on this process' CPU. Raises FailedError."""
    import torch

    with torch.inference_mode():
        wanted = archives.model("rows_net", "RowsNet")(torch.tensor([ROW]))[0].tolist()
    found: float = max(abs(one - other) for one, other in zip(output, wanted, strict=True))
    if found > DIFFERENCE:
        raise FailedError(f"the output differs by {found:.1e} from what a CPU makes of the same weights")
    return found


def _places(bench: Bench, pids: set[int]) -> list[dict[str, Any]]:
    """Answers until each worker has given one."""
    answers: list[dict[str, Any]] = []

    def all_have() -> bool:
        with ThreadPoolExecutor(8) as threads:
            answers.extend(threads.map(lambda _: bench.ask("pair", {"row": ROW}), range(16)))
        return {one["pid"] for one in answers} == pids

    wait_until(all_have, f"the workers {sorted(pids)} have answered", limit=60)
    return answers
