from __future__ import annotations

from msx_llm.pace import PrefillPace
from msx_llm.step import CopyPositions, Decode, Mixed, Prefill, TokenChunk

DECODE = Decode((0,), (1,), (0,))


def chunk(tokens: int) -> Prefill:
    return Prefill(0, 0, tuple(range(tokens)))


def test_until_something_was_measured_it_is_the_most() -> None:
    pace = PrefillPace((32, 128, 512), 256)
    assert pace.chunk == 256
    pace.note(DECODE, 0.01)
    assert pace.chunk == 256


def test_the_largest_bucket_that_costs_no_more_than_a_decoding_step() -> None:
    pace = PrefillPace((32, 128, 512), 512)
    pace.note(chunk(128), 0.040)
    pace.note(DECODE, 0.041)
    assert pace.chunk == 128


def test_at_least_the_smallest_bucket() -> None:
    pace = PrefillPace((32, 128, 512), 512)
    pace.note(chunk(128), 0.040)
    pace.note(DECODE, 0.001)
    assert pace.chunk == 32


def test_no_chunk_costs_less_than_to_read_the_weights() -> None:
    pace = PrefillPace((16, 32, 128), 128)
    pace.note(chunk(128), 0.040)
    pace.note(DECODE, 0.001)
    assert pace.within(100, pace.room(1)) == 32
    assert pace.within(10, pace.room(1)) == 10
    assert pace.chunk == 16, "beside texts that decode"


def test_padding_counts() -> None:
    pace = PrefillPace((32, 128, 512), 512)
    assert [pace.cost(tokens) for tokens in (1, 32, 33, 512)] == [32, 32, 128, 512]
    pace.note(chunk(2), 0.010)
    pace.note(DECODE, 0.045)
    assert pace.chunk == 128


def test_one_slow_step_does_not_change_the_pace() -> None:
    pace = PrefillPace((32, 128, 512), 512)
    pace.note(chunk(128), 0.040)
    pace.note(DECODE, 0.015)
    pace.note(DECODE, 60.0)
    pace.note(CopyPositions(0, 1, 2), 60.0)
    assert pace.chunk == 32


def test_it_follows_what_is_usual() -> None:
    pace = PrefillPace((32, 128, 512), 512)
    pace.note(chunk(128), 0.040)
    pace.note(DECODE, 0.015)
    for _ in range(50):
        pace.note(DECODE, 0.200)
    assert pace.chunk == 512


def test_prompts_in_a_mixed_step_cost_what_it_takes_longer() -> None:
    pace = PrefillPace((4, 16, 64), 64)
    single = TokenChunk(0, 9, (1,))
    pace.note(Mixed((single, single)), 0.010)
    pace.note(Mixed((single, TokenChunk(1, 0, tuple(range(10))))), 0.016)
    assert pace.chunk == 16


def test_a_prompt_is_cut_where_its_padding_would_cost_more() -> None:
    pace = PrefillPace((32, 128, 512), 512)
    assert pieces(pace, 400) == [128, 128, 128, 16]  # 416 places of four steps, not 512 of one
    assert pieces(pace, 140) == [128, 12]
    assert pieces(pace, 80) == [80]
    assert pieces(pace, 500) == [500]
    assert pieces(pace, 512) == [512]


def test_a_prompt_of_many_small_buckets() -> None:
    assert PrefillPace((1,), 2048).piece(2047) == 2047
    assert pieces(PrefillPace((8,), 65_536), 9000) == [8] * 1125


def test_while_more_prompts_wait_than_texts_decode_they_may_cost_several_steps() -> None:
    pace = PrefillPace((32, 128, 512), 512)
    pace.note(chunk(128), 0.128)
    pace.note(DECODE, 0.050)
    assert [pace.room(steps) for steps in (0.1, 1, 3, 100)] == [32, 50, 150, 800]
    assert [pace.within(400, pace.room(steps)) for steps in (1, 3)] == [32, 128]
    assert pace.within(10, pace.room(3)) == 10


def pieces(pace: PrefillPace, tokens: int) -> list[int]:
    found: list[int] = []
    while (left := tokens - sum(found)) > 0:
        found.append(pace.piece(left))
    return found
