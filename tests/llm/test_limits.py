"""How much text fits, by what the yaml says and what memory allows."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.config import parse_model_config
from msx_llm.limits import EngineLimits, check_context, limits_of
from msx_llm.memory import MIB
from msx_sdk.errors import HandlerLoadError

TOKEN = 16 << 10
"""Bytes."""


def limits(*, context: int = 2048, memory: int = 1024 * MIB, token: int = TOKEN, **keys: Any) -> EngineLimits:
    return limits_of(parse_model_config(keys)[0], context, token, memory)


def test_nothing_given_is_the_whole_context_and_sixteen_slots() -> None:
    found = limits()
    assert (found.context, found.max_input, found.slots, found.batch_total) == (2048, 2047, 16, 16 * 2048)
    assert found.slot_buckets == (1, 4, 8, 16)
    assert found.context_buckets == (256, 1024, 2048)
    assert (found.batch_prefill, found.prefill_buckets) == (512, (16, 32, 128, 512))


def test_a_small_model_has_few_graphs() -> None:
    found = limits(context=256)
    assert (found.context_buckets, found.prefill_buckets, found.batch_prefill) == ((256,), (16, 32, 128, 256), 256)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (4096, (256, 1024, 4096)),
        (8192, (512, 2048, 8192)),
        (32768, (2048, 8192, 32768)),
        (131072, (8192, 32768, 131072)),
    ],
)
def test_a_long_context_has_no_step_of_more_than_four_times_the_length(context: int, expected: tuple[int, ...]) -> None:
    assert limits(context=context, memory=context * TOKEN * 16).context_buckets == expected


def test_as_many_texts_as_the_memory_holds() -> None:
    assert limits(memory=8 * 2048 * TOKEN).slot_buckets == (1, 4, 8)
    assert limits(memory=4 * 2048 * TOKEN).slot_buckets == (1, 4)


def test_a_long_context_makes_room_for_a_few_texts() -> None:
    found = limits(context=131_072, memory=40_000 * TOKEN)
    assert (found.context, found.slot_buckets) == (8192, (1, 4))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"maxTotalTokens": 1000}, {"context": 1000, "max_input": 999, "context_buckets": (256, 512, 1000)}),
        ({"maxTotalTokens": 1024}, {"context": 1024, "context_buckets": (256, 512, 1024)}),
        ({"maxInputTokens": 100}, {"max_input": 100}),
        ({"maxTotalTokens": 257}, {"context_buckets": (256, 257)}),
        ({"maxTotalTokens": 256}, {"context_buckets": (256,)}),
        ({"slotBuckets": [1, 4, 8, 16, 20, 24]}, {"context_buckets": (512, 2048)}),
        ({"slotBuckets": [1, 4]}, {"context_buckets": (256, 512, 1024, 2048)}),
        ({"slotBuckets": [2, 3]}, {"slot_buckets": (2, 3), "slots": 3}),
        ({"slotBuckets": [32, 1], "maxConcurrent": 20}, {"slot_buckets": (1, 20), "max_concurrent": 20}),
        ({"maxBatchTotalTokens": 5000}, {"slots": 16, "batch_total": 5000}),
        ({"maxBatchTotalTokens": 100}, {"batch_total": 2048}),
        ({"contextBuckets": [128, 512, 4096]}, {"context_buckets": (128, 512, 2048)}),
        ({"slotBuckets": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}, {"context_buckets": (2048,)}),
        ({"maxBatchPrefillTokens": 64}, {"batch_prefill": 64, "prefill_buckets": (16, 32, 64)}),
        ({"captureBuckets": [2, 64, 1]}, {"capture_buckets": (1, 2, 16)}),
        ({"prefillBuckets": [16, 700]}, {"prefill_buckets": (16, 512)}),
        ({"memory": 64 * MIB}, {"context": 1024, "slots": 4}),
        ({"blockSize": 8}, {"block": 8}),
    ],
)
def test_the_yaml_decides(keys: dict[str, Any], expected: dict[str, Any]) -> None:
    found = limits(**keys)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"maxTotalTokens": 4096}, "maxTotalTokens: 4096 is more than the model's context of 2048 tokens"),
        (
            {"maxTotalTokens": 2000, "memory": 10 * MIB},
            "maxTotalTokens: 2000 tokens do not fit the memory for keys and values, which holds 640: give more by "
            "cacheMemory or cacheFraction",
        ),
        ({"memory": MIB}, "the memory for keys and values holds 64 tokens, which is not even one text of 256: give"),
    ],
)
def test_what_does_not_fit_is_refused(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(HandlerLoadError, match=text):
        limits(**keys)


def test_a_context_beyond_the_models_is_refused_before_weights_are_read() -> None:
    check_context(parse_model_config({"maxTotalTokens": 2048})[0], 2048)
    with pytest.raises(HandlerLoadError, match="maxTotalTokens: 2049 is more than the model's context of 2048 tokens"):
        check_context(parse_model_config({"maxTotalTokens": 2049})[0], 2048)


def test_states_of_texts_take_memory_whatever_their_length() -> None:
    text = 64 * MIB
    keys = parse_model_config({})[0]
    found = limits_of(keys, 2048, TOKEN, 1024 * MIB, text)
    assert (found.context, found.slots) == (2048, 10), "32 MiB of keys and values and 64 of states each"
    with pytest.raises(HandlerLoadError, match=r"holds 0 tokens beside 64.0 MiB of states, which is not even one text"):
        limits_of(keys, 2048, TOKEN, 64 * MIB, text)
    wanted = parse_model_config({"maxTotalTokens": 2048})[0]
    with pytest.raises(
        HandlerLoadError, match=r"do not fit .*, which holds 1024 tokens beside 64.0 MiB of states: give"
    ):
        limits_of(wanted, 4096, TOKEN, 80 * MIB, text)
