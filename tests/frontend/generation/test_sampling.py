from __future__ import annotations

from typing import Any

import msgspec
import pytest

from msx_frontend.generation.decoding import decode
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.sampling import SamplingFields, StreamOptions, sampling_params
from msx_sdk.generation import Capabilities, Constraint, SamplingDefaults, SamplingParams
from tests.frontend.generation.speaker import ALL


def params(offered: Capabilities = ALL, **fields: Any) -> SamplingParams:
    return sampling_params(decode(msgspec.json.encode(fields), SamplingFields), offered)


def test_nothing_given_is_the_default() -> None:
    assert params() == SamplingParams()
    nulls: dict[str, Any] = dict.fromkeys(SamplingFields.__struct_fields__)
    assert params(ALL, **nulls) == SamplingParams()


def test_the_models_own_defaults_stand_where_the_request_says_nothing() -> None:
    own = SamplingDefaults(temperature=0.6, top_k=20, top_p=0.9, repetition_penalty=1.1)

    def asked(**fields: Any) -> SamplingParams:
        return sampling_params(decode(msgspec.json.encode(fields), SamplingFields), ALL, defaults=own)

    assert asked() == SamplingParams(temperature=0.6, top_k=20, top_p=0.9, repetition_penalty=1.1)
    given = {"temperature": 0, "top_k": -1, "top_p": 1, "repetition_penalty": 1}
    assert asked(**given) == SamplingParams(temperature=0.0)


def test_all_of_them() -> None:
    given = params(
        temperature=0,
        top_p=0.5,
        top_k=3,
        min_p=0.1,
        typical_p=0.9,
        frequency_penalty=-1,
        presence_penalty=2,
        repetition_penalty=1.5,
        logit_bias={"50256": -100},
        seed=-1,
        stop=["a", "b"],
        stop_token_ids=[4],
        include_stop_str_in_output=True,
        ignore_eos=True,
        min_tokens=2,
        max_tokens=5,
        n=3,
        guided_regex="a+",
    )
    assert given == SamplingParams(
        temperature=0.0,
        top_p=0.5,
        top_k=3,
        min_p=0.1,
        typical_p=0.9,
        frequency_penalty=-1.0,
        presence_penalty=2.0,
        repetition_penalty=1.5,
        logit_bias={50256: -100.0},
        seed=(1 << 64) - 1,
        stop=("a", "b"),
        stop_token_ids=(4,),
        keep_stop=True,
        ignore_eos=True,
        min_tokens=2,
        max_tokens=5,
        n=3,
        constraint=Constraint(kind="regex", value="a+"),
    )


def test_top_k_of_minus_one_is_the_whole_vocabulary() -> None:
    assert params(top_k=-1).top_k == 0


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("temperature", 2.5, "expected `float` <= 2.0"),
        ("temperature", "hot", "expected `float | null`, got `str`"),
        ("top_p", 0, "expected `float` > 0.0"),
        ("top_k", -2, "expected `int` >= -1"),
        ("min_p", 1.5, "expected `float` <= 1.0"),
        ("frequency_penalty", 3, "expected `float` <= 2.0"),
        ("presence_penalty", -3, "expected `float` >= -2.0"),
        ("repetition_penalty", 0, "expected `float` > 0.0"),
        ("logit_bias", {"5": 101}, "expected `float` <= 100.0"),
        ("logit_bias", {"a": 1}, "expected `int`, got `str`"),
        ("n", 129, "expected `int` <= 128"),
        ("max_tokens", 0, "expected `int` >= 1"),
        ("stop", ["a"] * 5, "at most 4 sequences, not 5"),
        ("stop", [""], "a sequence of no characters"),
        ("stop", [1], "expected `str`, got `int`"),
        ("stop_token_ids", ["a"], "expected `int`, got `str`"),
    ],
)
def test_a_wrong_value_names_the_parameter_and_its_limit(name: str, value: Any, text: str) -> None:
    with pytest.raises(WrongParameter) as wrong:
        params(**{name: value})
    assert wrong.value.message.startswith(name)
    assert text in wrong.value.message


def test_fewest_and_most_tokens() -> None:
    with pytest.raises(WrongParameter, match=r"min_tokens: at most max_tokens \(2\), not 3"):
        params(min_tokens=3, max_tokens=2)


def test_the_model_says_how_many_stop_sequences() -> None:
    assert len(params(Capabilities(max_stop_sequences=6), stop=["a"] * 6).stop) == 6


def told(body: str) -> StreamOptions:
    return decode(body.encode(), SamplingFields).told_usage


def test_usage_belongs_to_a_stream() -> None:
    with pytest.raises(WrongParameter, match="stream_options: only together with stream: true"):
        told('{"stream_options": {"include_usage": true}}')
    assert told('{"stream": true, "stream_options": {"include_usage": true}}').include_usage
    assert not told('{"stream": true}').include_usage


def test_running_usage_goes_with_the_last_one() -> None:
    wrong = r"stream_options\.continuous_usage_stats: only together with include_usage: true"
    with pytest.raises(WrongParameter, match=wrong):
        told('{"stream": true, "stream_options": {"continuous_usage_stats": true}}')
