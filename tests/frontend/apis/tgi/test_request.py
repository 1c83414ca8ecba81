"""TGI's words for what is wrong, in its order."""

from __future__ import annotations

from typing import Any

import pytest

from msx_frontend.apis.tgi.request import Parameters, TgiRequest, check, generate_request
from msx_frontend.generation.errors import Invalid
from msx_sdk.generation import Capabilities, Constraint, GenerateRequest, SamplingParams
from tests.frontend.generation.images.samples import finder
from tests.frontend.generation.speaker import ALL


def asked(inputs: str = "x", **parameters: Any) -> TgiRequest:
    return TgiRequest(inputs=inputs, parameters=Parameters(**parameters))


def params(**parameters: Any) -> SamplingParams:
    return generate_request(asked(**parameters), ALL, finder(), stream=False).params


def test_nothing_given_is_greedy() -> None:
    expected = GenerateRequest(
        prompt="x", params=SamplingParams(temperature=0, logprobs=0, keep_stop=True), stream=True
    )
    assert generate_request(TgiRequest(inputs="x"), ALL, finder(), stream=True) == expected


@pytest.mark.parametrize(
    ("parameters", "temperature"),
    [
        ({}, 0.0),
        ({"do_sample": False}, 0.0),
        ({"do_sample": True}, 1.0),
        ({"temperature": 1.0}, 0.0),
        ({"temperature": 0.5}, 0.5),
        ({"temperature": 1.0, "do_sample": True}, 1.0),
        ({"top_k": 5}, 1.0),
        ({"top_p": 0.5}, 1.0),
        ({"typical_p": 0.5}, 1.0),
        ({"seed": 3}, 0.0),
    ],
)
def test_what_makes_it_sample(parameters: dict[str, Any], temperature: float) -> None:
    assert params(**parameters).temperature == temperature


def test_all_of_them() -> None:
    request = asked(
        best_of=2,
        do_sample=True,
        temperature=0.5,
        repetition_penalty=1.1,
        frequency_penalty=0.2,
        top_k=3,
        top_p=0.4,
        typical_p=0.6,
        max_new_tokens=7,
        stop=["a"],
        truncate=9,
        decoder_input_details=True,
        top_n_tokens=2,
        grammar={"type": "regex", "value": "a+"},
    )
    check(request, ALL, stream=False)
    made = generate_request(request, ALL, finder(), stream=False)
    assert made.truncate == 9
    assert made.params == SamplingParams(
        temperature=0.5,
        top_k=3,
        top_p=0.4,
        typical_p=0.6,
        repetition_penalty=1.1,
        frequency_penalty=0.2,
        stop=("a",),
        keep_stop=True,
        max_tokens=7,
        n=2,
        logprobs=2,
        prompt_logprobs=True,
        constraint=Constraint(kind="regex", value="a+"),
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"best_of": 5, "do_sample": True}, "`best_of` must be > 0 and <= 4. Given: 5"),
        ({"best_of": 0}, "`best_of` must be > 0 and <= 4. Given: 0"),
        ({"best_of": 2}, "you must use sampling when `best_of` is > 1"),
        ({"temperature": 0.0}, "`temperature` must be strictly positive"),
        ({"repetition_penalty": 0.0}, "`repetition_penalty` must be strictly positive"),
        ({"frequency_penalty": 2.5}, "`frequency_penalty` must be >= -2.0 and <= 2.0"),
        ({"top_p": 1.0}, "`top_p` must be > 0.0 and < 1.0"),
        ({"typical_p": 0.0}, "`typical_p` must be > 0.0 and < 1.0"),
        ({"top_k": 0}, "`top_k` must be strictly positive"),
        ({"max_new_tokens": 0}, "`max_new_tokens` must be strictly positive"),
        ({"stop": ["a"] * 5}, "`stop` supports up to 4 stop sequences. Given: 5"),
        ({"stop": [""]}, "`stop` must not hold an empty sequence"),
        ({"best_of": 2, "do_sample": True, "seed": 1}, "`seed` must not be set when `best_of` > 1"),
        ({"seed": -1}, "`seed` must be >= 0 and < 2^64"),
        ({"top_n_tokens": 6}, "`top_n_tokens` must be >= 0 and <= 5. Given: 6"),
        ({"inputs": ""}, "`inputs` cannot be empty"),
        ({"truncate": 0}, "`truncate` must be strictly positive and less than 100. Given: 0"),
        ({"truncate": 101}, "`truncate` must be strictly positive and less than 100. Given: 101"),
        ({"watermark": True}, "`watermark` is not supported"),
        # the first in TGI's order is told
        ({"temperature": 0.0, "top_k": 0, "inputs": ""}, "`temperature` must be strictly positive"),
        ({"best_of": 2, "repetition_penalty": 0.0}, "you must use sampling when `best_of` is > 1"),
    ],
)
def test_what_is_wrong(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as wrong:
        check(asked(**parameters), ALL, stream=False)
    assert wrong.value.message == message


def test_what_a_stream_cannot_do() -> None:
    for parameters, name in (
        ({"best_of": 2, "do_sample": True}, "best_of"),
        ({"decoder_input_details": True}, "decoder"),
    ):
        with pytest.raises(Invalid, match=f"`{name}.* is not supported when streaming tokens"):
            check(asked(**parameters), ALL, stream=True)
        check(asked(**parameters), ALL, stream=False)


def test_a_model_that_makes_one_text_a_request() -> None:
    with pytest.raises(Invalid, match="`best_of` is disabled"):
        check(asked(best_of=2, do_sample=True), Capabilities(generate=True), stream=False)
    check(asked(best_of=1), Capabilities(generate=True), stream=False)


@pytest.mark.parametrize(
    ("grammar", "kind"),
    [
        ({"type": "json", "value": {"properties": {}}}, "json_schema"),
        ({"type": "json_object", "value": '{"properties": {}}'}, "json_schema"),
        ({"type": "json_schema", "value": {"name": "x", "schema": {"properties": {}}}}, "json_schema"),
        ({"type": "regex", "value": "a"}, "regex"),
    ],
)
def test_grammars(grammar: dict[str, Any], kind: str) -> None:
    constraint = params(grammar=grammar).constraint
    assert constraint is not None
    assert constraint.kind == kind


def test_a_grammar_that_is_none() -> None:
    with pytest.raises(Invalid, match=r"grammar is not valid: grammar\.type: expected"):
        params(grammar={"type": "xml"})
    with pytest.raises(Invalid, match="grammar is not valid: grammar: the model cannot keep to"):
        generate_request(asked(grammar={"type": "regex", "value": "a"}), Capabilities(), finder(), stream=False)
