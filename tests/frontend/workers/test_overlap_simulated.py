"""The device of a worker that overlaps does not wait, in simulated time: the queue and the runners are the server's."""

from __future__ import annotations

import pytest

from tests.frontend.workers.simulated_worker import Bench, Steps

LONG = Steps(before=0.05, device=0.15, behind=0.05)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("steps", "batch_size"),
    [
        (Steps(before=0.0005, device=0.002, behind=0.0005), 4),
        (Steps(before=0.001, device=0.005, behind=0.001), 16),
        (Steps(before=0.001, device=0.02, behind=0.001), 16),
        (Steps(before=0.02, device=0.05, behind=0.005), 16),
        (LONG, 1),
    ],
)
def test_the_device_always_has_a_batch(
    steps: Steps, batch_size: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(monkeypatch, steps, batch_size, workers=workers)
    assert bench.utilisation(clients=6 * batch_size * workers, seconds=100 * steps.device) > 0.99
    assert {size for worker in bench.workers for size in worker.sizes} == {batch_size}
    assert max(len(runner.in_flight.batches) for runner in bench.runners) <= 3


def test_it_waits_where_steps_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, LONG, 1, overlaps=False)
    assert bench.utilisation(clients=6, seconds=100 * LONG.device) == pytest.approx(0.6, abs=0.02)


def test_it_waits_for_long_steps_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of more than 100 ms is sent ahead alone, so that no more requests wait where nothing takes them back."""
    bench = Bench(monkeypatch, Steps(before=0.2, device=0.2, behind=0.1), 1)
    assert bench.utilisation(clients=6, seconds=20.0) == pytest.approx(0.8, abs=0.02)


def test_the_server_learns_the_time_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not how long a batch is in the worker."""
    steps = Steps(before=0.001, device=0.005, behind=0.001)
    bench = Bench(monkeypatch, steps, 16)
    bench.utilisation(clients=96, seconds=1.0)
    assert bench.policy.typical_seconds == pytest.approx(steps.device, rel=0.02)


def test_few_clients_have_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are sent as they come, and a batch that is not full begins when the device needs it."""
    bench = Bench(monkeypatch, Steps(before=0.0005, device=0.005, behind=0.0005), 16)
    assert bench.utilisation(clients=20, seconds=1.0) > 0.95
    sizes = bench.workers[0].sizes
    assert sum(sizes) / len(sizes) > 8
