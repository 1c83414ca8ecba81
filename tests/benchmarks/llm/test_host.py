from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from benchmarks.handlers.null_text import NullRunner
from benchmarks.llm import cold, host
from benchmarks.llm.host_load import HostFigures, HostLoad, table
from benchmarks.llm.null_checkpoint import NullCheckpoint
from benchmarks.servers.processor import processor_seconds
from msx_llm.steps import StartingRunner
from msx_llm.text import Tokenizer


def test_the_null_runner_is_a_runner() -> None:
    runner: StartingRunner = NullRunner(vocab_size=5, slots=3, context=8, seconds=0)
    assert runner.prefill(0, 0, (1, 2)).shape == (5,)
    assert runner.prefill(0, 0, (1, 2), all_logits=True).shape == (2, 5)
    np.testing.assert_array_equal(runner.decode((0, 1), (1, 2), (2, 2))[0], runner.prefill(0, 0, (1,)))


def test_its_tokenizer_can_write_json(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("model")
    NullCheckpoint(300).write(folder)
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.vocab_size == 300
    assert tokenizer.eos == {0}
    assert {tokenizer.token_bytes(id) for id in range(256)} == {bytes([byte]) for byte in range(256)}
    assert tokenizer.token_text(256) == "aaaa"


def test_a_load_has_a_row_and_one_for_the_ratio() -> None:
    load = HostLoad("plain", 16, HostFigures([1.0], [2.0], [3.0], [4.0], [5.0]))
    assert load.rows() == [["plain", "16", "1.00", "2.00", "3.00", "4.00", "5.00"]]
    load.before = HostFigures([2.0], [2.0], [6.0], [2.0], [10.0])
    assert load.rows()[1] == ["of before", "", "0.50", "1.00", "0.50", "2.00", "0.50"]
    assert [target.met for target in load.targets()] == [False, True]
    assert HostLoad("logprobs", 16).targets() == HostLoad("plain", 1).targets() == []


def test_each_step_time_has_a_table() -> None:
    assert table(0.0, []).title == "Steps that wait for no device"
    assert table(20.0, []).title == "Steps of 20 ms"


def test_what_a_sleep_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "_micros", {0.02: 300.0, 0: 100.0}.__getitem__)
    assert cold.after_sleep(0.02) == 3


def test_both_servers_take_turns() -> None:
    load, ours, other = HostLoad("plain", 1), object(), object()
    assert [it for it, _ in load.turns(0, ours, other)] == [other, ours]  # type: ignore[arg-type]
    assert [it for it, _ in load.turns(1, ours, other)] == [ours, other]  # type: ignore[arg-type]
    assert [it for it, _ in load.turns(1, ours, None)] == [ours]  # type: ignore[arg-type]


def test_all_slots_are_there() -> None:
    assert host.config(0.1)["slotBuckets"][-1] == max(host.TEXTS)


def test_the_processor_time_of_another_process() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "sum(range(3_000_000)); print(flush=True); input()"], stdin=-1, stdout=-1
    ) as one:
        assert one.stdin
        assert one.stdout
        one.stdout.readline()
        assert 0.005 < processor_seconds(one.pid) < 60
        one.stdin.close()
    with pytest.raises(OSError, match="Invalid argument"):
        processor_seconds(one.pid)
