"""Results of benchmarks/parallel/parallel.py from its figures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.parallel.group import PHASES, anonymous, objects, phases, pids
from benchmarks.parallel.parallel import Found, Memory, Messaging, _messages, _messaging_targets, _plot, _stepping
from benchmarks.parallel.perceptron import Perceptron

ONE = Found({}, [10e-3] * 3, [0.0] * 3, [90e-6] * 3, [30e-6, 30e-6, 90e-6], [10e-6] * 3, [1.0e-3, 1.0e-3, 2.0e-3])
TWO = Found({}, [6e-3] * 3, [0.2] * 3, [99e-6] * 3, [40e-6, 40e-6, 100e-6], [130e-6] * 3, [1.2e-3, 1.2e-3, 2.2e-3])


def test_messages_are_what_one_rank_does_not_spend_round_by_round() -> None:
    messaging = Messaging.between(TWO, ONE)
    assert messaging.told == pytest.approx([10e-6] * 3)
    assert messaging.followed == pytest.approx([120e-6] * 3)
    assert messaging.called == pytest.approx([200e-6] * 3)
    assert messaging.paused == pytest.approx([9e-6] * 3)


def test_the_dearest_message_counts() -> None:
    assert Messaging([1e-6], [3e-6], [2e-6], [9.0]).share(1e-3) == pytest.approx(0.003)
    assert Messaging([-1e-6], [-3e-6], [-2e-6], [0.0]).share(1e-3) == 0.0


def test_target_is_the_share_of_a_step() -> None:
    slower = Found({}, [3e-3] * 3, [0.2] * 3, [99e-6] * 3, TWO.gaps, TWO.led, TWO.calls)
    targets = _messaging_targets({1: ONE, 2: TWO, 4: slower})
    assert [(target.measured, target.met) for target in targets] == [("3.3%", True), ("6.7%", False)]


def test_one_rank_has_no_collectives_and_no_messages() -> None:
    found = {1: ONE, 2: TWO}
    assert _stepping(found).rows == [("1", "10.0", "10.0", "–", "–"), ("2", "6.00", "6.00", "20%", "3.3%")]
    assert [row[:2] for row in _messages(found).rows] == [("2", "10.0 (10.0)")]


def test_phases_add_up_to_the_load() -> None:
    reached = {"process": 100.0, "handler": 100.5, "imported": 103.0, "met": 104.0, "loaded": 104.25, "ready": 105.0}
    assert phases(reached) == dict(zip(PHASES, [0.5, 2.5, 1.0, 0.25, 0.75], strict=True))


def test_a_rank_may_have_its_share_what_all_have_and_the_slack() -> None:
    perceptron = Perceptron.of_size(1e9, 2048)
    assert 1e9 <= perceptron.size < 1.2e9
    assert Memory(4, perceptron, 0, 0.0).limit == perceptron.size / 4 + perceptron.blocks * 2048 * 4 + 700e6


def test_the_file_is_read_as_safetensors_and_takes_no_disk(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    perceptron = Perceptron(512, 2)
    path = tmp_path / "model.safetensors"
    perceptron.write(path)
    with safetensors.safe_open(str(path), framework="np") as file:
        found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        assert file.get_tensor("blocks.1.down.bias").tolist() == [0.0] * 512
    assert found == perceptron.shapes()
    assert perceptron.size == 2 * (2 * 512 * 2048 + 2048 + 512) * 4
    assert path.stat().st_blocks * 512 < perceptron.size / 2


def test_process_ids_of_a_group_and_of_a_model_of_one_rank() -> None:
    ranks = [{"rank": 0, "pid": 11}, {"rank": 1, "pid": 12}, {"rank": 2, "pid": 0}]
    assert pids([{"id": "9000", "pid": 11, "ranks": ranks}]) == {0: 11, 1: 12}
    assert pids([{"id": "9000", "pid": 11}]) == {0: 11}
    assert pids([{"id": "9000", "status": "STARTING"}]) == {}


def test_memory_of_its_own_and_of_who_has_gone() -> None:
    before = anonymous(os.getpid())
    held = bytearray(b"x") * (64 << 20)
    assert anonymous(os.getpid()) - before > len(held) * 0.98
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert anonymous(gone.pid) == 0


def test_steps_of_a_stream() -> None:
    assert objects(b'{"began":1.0,"ended":2.5}\n{"began": 3}') == [{"began": 1.0, "ended": 2.5}, {"began": 3}]


def test_the_plot_has_a_bar_for_each_number_of_ranks() -> None:
    assert _plot({1: ONE, 2: TWO}).panels == {"one row": {"1 rank": [10.0] * 3, "2 ranks": [6.0] * 3}}
