"""Targets of an encoder on a GPU, and what is said where there is none."""

from __future__ import annotations

import importlib.util
import subprocess
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.handlers.measured_calls import MeasuredNetwork
from benchmarks.utilisation import networks
from benchmarks.utilisation.figures import Record, Turn

BATCH, ALONE = 0.004, 0.00275
"""Seconds of a call with 64 texts, and with one."""


def record(rate: float, p50: float) -> Record:
    calls = [(BATCH * number, BATCH * (number + 1), 64) for number in range(500)]
    return Record("msx", 64, [Turn(rate, p50, [BATCH], [ALONE], calls)])


@pytest.mark.parametrize(
    ("rate", "p50", "met"),
    [
        (15_300, 0.0032, [True, True, True]),
        (15_100, 0.0032, [False, True, True]),
        (15_300, 0.0033, [True, True, False]),
    ],
)
def test_targets_of_the_encoder(rate: float, p50: float, met: list[bool]) -> None:
    found = networks.targets(networks.encoder_on_gpu(), record(rate, p50))
    assert [target.met for target in found] == met
    assert [target.limit for target in found] == ["≥ 0.95", "≥ 99%", "≤ 0.5"]
    assert networks.targets(networks.encoder_on_cpu(), record(rate, p50)) == []


def test_without_a_package_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", {"mindspore": "found"}.get)
    assert networks.missing("torch") == "Models that need torch were not measured: it is not installed."
    assert networks.missing("mindspore") == ""


@pytest.mark.parametrize(("printed", "why_not"), [("False\n", "torch sees no GPU here."), ("True\n", "")])
def test_without_a_gpu_a_sentence_says_so(printed: str, why_not: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: SimpleNamespace(stdout=printed))
    found = networks.missing_gpu()
    assert found.endswith(why_not)
    assert bool(found) == bool(why_not)


@pytest.mark.parametrize("as_list", [True, False])
def test_a_network_is_called_with_the_largest_batch_and_with_one_row_of_it(as_list: bool) -> None:
    sizes: list[int] = []

    def network(batch: Any) -> str:
        sizes.append(len(batch[0] if as_list else batch))
        return "answer"

    measured = MeasuredNetwork(network, bare=0.0)
    for size in (2, 16, 3):
        rows = np.zeros((size, 4))
        assert measured([rows] if as_list else rows) == "answer"
    figures = measured.figures()
    assert [size for *_, size in figures["calls"]] == [2, 16, 3]
    assert (sizes[3], sizes[-1]) == (16, 1)
    assert len(sizes) == 3 + len(figures["bare"]) + len(figures["alone"])
