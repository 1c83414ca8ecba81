"""Number of processes that share the processor of a machine, as workers of vLLM are told."""

from __future__ import annotations

from pathlib import Path

from tests.frontend.harness import Harness, in_harness

TWO = "parallelType: custom\nparallelLevel: 2\ndeviceType: cpu"


def told(harness: Harness, model: str) -> list[int]:
    return [group.spec.load.host_processes for group in harness.groups(model)]


def test_workers_of_all_models_count_with_all_of_their_processes(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", handler="vllm", initial_workers=2, synchronous=True)
        await harness.register("n", handler="vllm", config=TWO, synchronous=True)
        assert (told(harness, "m"), told(harness, "n")) == ([2, 2], [4])
        await harness.management.scale("m", None, 3, 5, wait=True)
        assert told(harness, "m") == [2, 2, 7]
        await harness.management.unregister("m", "1.0")
        await harness.register("o", handler="vllm", synchronous=True)
        assert told(harness, "o") == [3]

    in_harness(tmp_path, test)


def test_other_handlers_and_devices_do_not_count(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("plain", config="deviceType: cpu", initial_workers=3, synchronous=True)
        await harness.register("m", handler="vllm", synchronous=True)
        await harness.register("n", handler="vllm", config="deviceType: cpu", synchronous=True)
        assert (told(harness, "plain"), told(harness, "m"), told(harness, "n")) == ([0, 0, 0], [0], [1])

    in_harness(tmp_path, test, npus=2)
