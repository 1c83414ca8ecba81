"""The arithmetic of benchmarks/llm: arrivals, times of tokens, static batching, streams."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click
import pytest

from benchmarks.llm import static
from benchmarks.llm import trace as times
from benchmarks.llm.arrivals import OUTPUT, PROMPT, Arrival, Clients, highest, mean_output
from benchmarks.llm.checkpoint import LETTERS, Checkpoint, token_id, token_text
from benchmarks.llm.decode import Decode
from benchmarks.llm.load import Load, Row
from benchmarks.llm.names import CTRANSLATE2, HUGGING_FACE, MSX, RUNNER, TORCH
from benchmarks.llm.peer import peer
from benchmarks.llm.prompt import FirstToken
from benchmarks.llm.setting import WarmUp, config
from benchmarks.llm.step import Disturbance, Step, totals
from benchmarks.llm.streams import DONE, EVENT, trace
from benchmarks.llm.trace import Trace

SMALL = Checkpoint(dim=32, layers=2, heads=4, kv_heads=2, hidden=48, vocabulary=96, context=64)


def test_rates_differ_in_their_gaps_alone() -> None:
    clients = Clients(8192)
    slow, fast = clients.poisson(50, 2.0), clients.poisson(50, 8.0)
    assert [(len(one.prompt), one.output) for one in slow] == [(len(one.prompt), one.output) for one in fast]
    assert [one.at for one in slow] == pytest.approx([4 * one.at for one in fast])
    assert slow[0].at == 0.0
    assert all(one.at == 0.0 for one in clients.poisson(50, math.inf))


def test_gaps_are_exponential_and_lengths_as_promised() -> None:
    many = Clients(8192, seed=1).poisson(4000, 5.0)
    gaps = [after.at - before.at for before, after in pairwise(many)]
    assert sum(gaps) / len(gaps) == pytest.approx(0.2, rel=0.05)
    assert sum(gap > 0.2 for gap in gaps) / len(gaps) == pytest.approx(1 / math.e, rel=0.05)
    assert {len(one.prompt) for one in many} == set(range(PROMPT[0], PROMPT[1] + 1))
    outputs = sorted(one.output for one in many)
    assert (outputs[0], outputs[-1]) == OUTPUT
    assert math.log2(outputs[2000]) == pytest.approx(5.5, abs=0.15)  # half way from 8 to 256, in doublings
    assert mean_output(many) == sum(outputs) / 4000


def test_no_prompt_begins_as_another() -> None:
    clients = Clients(300)
    many = [*clients.poisson(100, 1.0), *clients.alike(100, 7, 3), *clients.poisson(100, 1.0)]
    assert len({one.prompt[0] for one in many}) == 300
    assert max(token for one in many for token in one.prompt) == 299
    assert {(len(one.prompt), one.output, one.at) for one in many[100:200]} == {(7, 3, 0.0)}


def test_highest_rate_is_found_by_halves() -> None:
    tried: list[float] = []

    def holds(rate: float) -> bool:
        tried.append(rate)
        return rate < 3.0

    assert highest(holds, 1.0, 16.0, 4) == pytest.approx(2.0 * 2**0.5)
    assert tried == pytest.approx([4.0, 2.0, 2.0 * 2**0.5, 2.0 * 2**0.75])
    assert highest(lambda rate: False, 1.0, 16.0, 3) is None


def test_percentiles_are_values_that_were_there() -> None:
    hundred = [float(value) for value in range(100, 0, -1)]
    assert times.percentile(hundred, 0.5) == 50.0
    assert times.percentile(hundred, 0.99) == 99.0
    assert times.percentile(hundred, 1.0) == 100.0
    assert times.percentile([7.0], 0.0) == 7.0
    assert times.percentile([1.0, 2.0], 0.99) == 2.0


ONE = Trace(10.0, [10.5, 11.0, 12.0])
TWO = Trace(11.0, [11.5, 14.0])


def test_times_of_a_trace() -> None:
    assert ONE.first == 0.5
    assert ONE.gaps == [0.5, 1.0]
    assert ONE.per_token == pytest.approx(2.0 / 3)
    assert times.gaps([ONE, TWO]) == [0.5, 1.0, 2.5]


def test_throughput_counts_what_came_meanwhile() -> None:
    assert times.together([ONE, TWO]) == (11.5, 12.0)
    assert times.throughput([ONE, TWO], 10.5, 11.5) == 2.0  # 11.0 and 11.5, not 10.5
    assert times.overall([ONE, TWO]) == pytest.approx(5 / 4)
    assert times.sustained([ONE, TWO], settled=0.5) == pytest.approx(1 / 0.5)  # until the last request: 11.0
    assert times.within([ONE, TWO], 11.0, 14.0) == [1.0, 2.5]


class Clock:
    """A batch that takes 2 s for a prompt and 1 s for a step."""

    def __init__(self) -> None:
        self.now = 100.0
        self.positions: list[list[int]] = []

    def prefill(self, slot: int, prompt: Sequence[int]) -> None:
        self.now += 2.0

    def step(self, positions: Sequence[int]) -> None:
        self.now += 1.0
        self.positions.append([*positions])

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def run(self, some: Sequence[Arrival], slots: int) -> list[Trace]:
        return static.run(self, some, slots, lambda: self.now, self.sleep)


def test_a_static_batch_runs_until_its_longest_has_ended() -> None:
    clock = Clock()
    some = [Arrival(0.0, (1, 2, 3), 1), Arrival(0.0, (4,), 4), Arrival(0.0, (5, 6), 2)]
    first, second, third = clock.run(some, slots=2)
    assert first == Trace(100.0, [102.0])
    assert second == Trace(100.0, [104.0, 105.0, 106.0, 107.0])
    assert third == Trace(100.0, [109.0, 110.0])  # waited for both
    assert clock.positions == [[3, 1], [4, 2], [5, 3], [2]]


def test_a_static_batch_does_not_wait_for_who_is_not_there() -> None:
    clock = Clock()
    some = [Arrival(0.0, (1,), 3), Arrival(1.0, (2,), 1), Arrival(1.5, (3,), 1), Arrival(50.0, (4,), 1)]
    traces = clock.run(some, slots=16)
    assert [trace.instants[0] for trace in traces] == [102.0, 106.0, 108.0, 152.0]
    assert [trace.asked for trace in traces] == [100.0, 101.0, 101.5, 150.0]


def test_share_of_a_static_batch_that_is_of_use() -> None:
    assert static.useful([8, 8, 8, 8], 2) == 1.0
    assert static.useful([1, 9, 2, 2], 2) == pytest.approx(14 / 22)
    assert static.useful([4, 1], 16) == pytest.approx(5 / 64)  # empty slots are computed, too


DECODED = Decode(
    {
        MSX: {1: [100.0, 120.0, 90.0], 8: [300.0, 320.0, 60.0]},
        TORCH: {1: [200.0, 200.0, 200.0], 8: [400.0, 400.0, 100.0]},
    }
)
BARE = Decode({**DECODED.rates, RUNNER: {8: [240.0, 240.0, 60.0]}})


def test_decoding_is_compared_round_by_round() -> None:
    assert DECODED.of(TORCH, MSX, 8) == (0.75, 0.6, 0.8)
    assert [(one.measured, one.met) for one in BARE.targets()] == [("0.60", False), ("0.75", True)]
    assert DECODED.table().rows[0] == ("1", MSX, "100", "90.0 – 120", "10.0", "0.50 (0.45 – 0.60)", "–")
    assert [(row[0], row[4]) for row in DECODED.table().rows] == [
        ("1", "10.0"),
        ("1", "5.00"),
        ("8", "26.7"),
        ("8", "20.0"),
    ]


def test_each_number_of_texts_is_compared_with_hugging_face() -> None:
    rates = {MSX: {1: [90.0, 91.0], 16: [500.0, 520.0]}, HUGGING_FACE: {1: [100.0, 100.0], 16: [700.0, 650.0]}}
    found = Decode(rates)
    assert [(one.what.split(",")[0], one.measured, one.met) for one in found.targets()] == [
        ("1 text", "0.91", True),
        ("16 texts", "0.76", False),
    ]
    assert found.table().rows[0][-2:] == ("–", "0.91 (0.90 – 0.91)")


def test_a_prompt_is_compared_by_its_speed() -> None:
    found = FirstToken({MSX: [0.5, 0.4], HUGGING_FACE: [0.4, 0.4], CTRANSLATE2: [0.3, 0.2]})
    assert found.speed(MSX) == pytest.approx((0.9, 0.8, 1.0))
    assert [(one.measured, one.met) for one in found.targets()] == [("0.90", True)]
    assert found.table().rows[2] == (CTRANSLATE2, "250", "200 – 300")
    assert FirstToken({MSX: [0.5]}).targets() == []


def test_without_torch_there_is_no_verdict() -> None:
    alone = Decode({MSX: DECODED.rates[MSX]})
    assert alone.targets() == []
    assert alone.table().rows[0][-1] == "–"


def row(batching: str, rate: float, tokens: float, per_token: float) -> Row:
    return Row(batching, rate, tokens, [Trace(0.0, [per_token, 2 * per_token])] * 3)


IDLE = row("continuous", 0.0, 90.0, 0.01)


def loads(static_per_token: float, best: bool = True) -> Load:
    tried = [row("continuous", 4.0, 280.0, 0.02), row("continuous", 8.0, 500.0, 0.04)]
    static = [
        row("static", 1.6, 80.0, static_per_token),
        row("static", 4.0, 90.0, 0.2),
        row("static", math.inf, 100.0, 0.9),
    ]
    return Load(IDLE, tried, tried[0] if best else None, static, 0.3)


def test_static_batching_is_given_a_part_of_the_load_that_keeps_the_promise() -> None:
    assert loads(0.03).target().met
    assert not loads(0.029).target().met  # it keeps the promise, too
    rows = loads(0.03).table().rows
    assert [cells[1] for cells in rows] == ["in turn", "4.00", "8.00", "1.60", "4.00", "all at once"]
    assert [cells[-1] for cells in rows] == ["1.00", "2.00", "4.00", "3.00", "20.00", "90.00"]


def test_without_a_rate_that_keeps_the_promise_there_is_no_gain() -> None:
    assert not loads(0.9, best=False).target().met


def test_parts_of_a_step_are_read_from_metrics() -> None:
    text = """\
# TYPE msx_llm_step_seconds gauge
msx_llm_step_seconds{model="llm",version="1.0",part="model",rank="0"} 4.5
msx_llm_step_seconds{part="sampling",model="llm",version="1.0",rank="0"} 0.25
msx_llm_steps{model="llm",version="1.0",rank="0"} 300.0
msx_llm_running{model="llm"} 7
"""
    assert totals(text) == {"model": 4.5, "sampling": 0.25, "steps": 300.0}


def test_whatever_is_not_the_model_is_overhead() -> None:
    one = Step({"model": 0.018, "sampling": 0.0005, "scheduling": 0.0005, "messaging": 0.001})
    assert one.overhead == pytest.approx(0.1)
    assert not one.target().met
    assert one.table().rows[0] == ("model", "18.0", "90.0%")


def test_a_disturbance_is_compared_run_by_run() -> None:
    disturbed = Disturbance([0.01, 0.02, 0.01], [0.015, 0.05, 0.018], [1.0, 2.0, 3.0])
    assert disturbed.ratio == pytest.approx(1.8)
    assert disturbed.target().met
    assert [cells[1] for cells in disturbed.table().rows] == ["10.0", "18.0", "2,000"]


def test_chunks_and_limits_of_the_server() -> None:
    assert config(32)["prefillBuckets"] == [32]
    assert config(200)["prefillBuckets"] == [32, 128, 200]
    assert WarmUp(1.0, ["decode 1 × 256", "decode 4 × 256", "prefill 32 × 256"]).decoding == 2


def event(text: str) -> bytes:
    return EVENT + json.dumps({"choices": [{"index": 0, "text": text}]}).encode() + b"\n\n"


def test_tokens_of_a_stream_come_when_their_event_is_whole() -> None:
    one, two, last = event("aaaa"), event("aaabaaac"), event("")
    pieces = [(1.0, one[:20]), (2.0, one[20:] + two), (3.0, last + EVENT + DONE + b"\n\n")]
    assert trace(0.5, pieces, 3) == Trace(0.5, [2.0, 2.0, 2.0])


def test_a_refusal_is_shown() -> None:
    with pytest.raises(click.ClickException, match=r"0 tokens came instead of 8.*too many requests"):
        trace(0.5, [(1.0, b'{"error": "too many requests"}')], 8)


def test_parameters_of_the_checkpoint() -> None:
    assert Checkpoint().parameters == pytest.approx(32e6, rel=0.01)


def test_tokens_are_as_long_as_each_other() -> None:
    words = SMALL.tokenizer()["model"]["vocab"]
    assert sorted(words.values()) == [*range(96)]
    assert {len(word) for word in words} == {LETTERS}
    assert [token_text(id) for id in (0, 27, 8191)] == ["aaaa", "aabb", "amdb"]
    assert all(token_id(word) == id for word, id in words.items())


def test_the_checkpoint_is_read_as_safetensors(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    safetensors = pytest.importorskip("safetensors")
    SMALL.write(tmp_path)
    with safetensors.safe_open(str(tmp_path / "model.safetensors"), framework="np") as file:
        found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        assert file.get_tensor("model.norm.weight").tolist() == [1.0] * 32
        assert 0.01 < file.get_tensor("lm_head.weight").std() < 0.03
    assert found == SMALL.shapes()


PEER = """\
import sys
from benchmarks.llm.orders import serve
def add(a, b):
    print("noise")
    return {"sum": a + b, "argument": sys.argv[1]}
serve({"add": add, "leave": lambda: sys.exit("I have had enough")})
"""


def test_a_peer_answers_and_says_why_it_does_not() -> None:
    with peer("the peer", Path(sys.executable), "-c", PEER, "here") as one:
        assert one.ask("add", a=1, b=2) == {"sum": 3, "argument": "here"}
        with pytest.raises(click.ClickException, match=r"(?s)the peer failed at leave.*I have had enough"):
            one.ask("leave")


def test_plots_of_decoding_and_of_the_load() -> None:
    assert [panel[MSX] for panel in DECODED.plot().panels.values()] == [DECODED.rates[MSX][1], DECODED.rates[MSX][8]]
    drawn = loads(0.03).plot()
    static = {rate: values[0] for rate, values in drawn.series["static batching"].items()}
    assert static == pytest.approx({1.6: 30.0, 4.0: 200.0})
    assert [*drawn.series["msx, continuous batching"]] == [4.0, 8.0]
