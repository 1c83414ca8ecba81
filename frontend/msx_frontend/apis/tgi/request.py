"""TGI's generate request, and its refusals in TGI's words and order."""

from typing import Any

import msgspec

from msx_core.generation import Capabilities, Constraint, GenerateRequest, SamplingParams
from msx_core.generation.wire import Integer
from msx_frontend.apis.tgi.markdown import prompt_of
from msx_frontend.generation.constraint import check_offered, held_by_format, response_format
from msx_frontend.generation.errors import Invalid, WrongParameter
from msx_frontend.generation.images.finder import ImageFinder
from msx_frontend.generation.schemas import Held


class Parameters(msgspec.Struct, kw_only=True):
    best_of: Integer | None = None
    temperature: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    top_k: Integer | None = None
    top_p: float | None = None
    typical_p: float | None = None
    do_sample: bool | None = None
    max_new_tokens: Integer | None = None
    return_full_text: bool | None = None
    stop: list[str] | None = None
    truncate: Integer | None = None
    watermark: bool | None = None
    details: bool | None = None
    decoder_input_details: bool | None = None
    seed: int | None = None
    top_n_tokens: Integer | None = None
    grammar: dict[str, Any] | None = None
    adapter_id: str | None = None

    @property
    def sampled(self) -> bool:
        """Whether to sample, as TGI decides: if asked for, or by a parameter that only sampling uses."""
        warped = self.temperature not in (None, 1.0) or self.top_k or self.top_p or self.typical_p
        return bool(self.do_sample or warped)


class TgiRequest(msgspec.Struct, kw_only=True):
    inputs: str
    parameters: Parameters | None = None
    stream: bool = False
    model: str | None = None
    """MSX's own member: TGI serves one model."""

    @property
    def asked(self) -> Parameters:
        return self.parameters or Parameters()


def check(request: TgiRequest, offered: Capabilities, *, stream: bool) -> None:
    """Raises Invalid for the first wrong member."""
    for wrong, text in _checks(request, request.asked, offered, stream):
        if wrong:
            raise Invalid(text)


def generate_request(
    request: TgiRequest, offered: Capabilities, images: ImageFinder, *, stream: bool
) -> GenerateRequest:
    """Greedy unless sampling was asked for. All of `best_of` come back: which is best is told from their tokens."""
    asked = request.asked
    params = SamplingParams(
        temperature=(1.0 if asked.temperature is None else asked.temperature) if asked.sampled else 0.0,
        top_k=asked.top_k or 0,
        top_p=1.0 if asked.top_p is None else asked.top_p,
        typical_p=1.0 if asked.typical_p is None else asked.typical_p,
        repetition_penalty=1.0 if asked.repetition_penalty is None else asked.repetition_penalty,
        frequency_penalty=asked.frequency_penalty or 0.0,
        seed=asked.seed,
        stop=tuple(asked.stop or ()),
        keep_stop=True,
        max_tokens=asked.max_new_tokens,
        n=asked.best_of or 1,
        logprobs=asked.top_n_tokens or 0,
        prompt_logprobs=bool(asked.decoder_input_details),
        constraint=_grammar(asked.grammar, offered),
    )
    prompt = prompt_of(request.inputs, images)
    return GenerateRequest(
        prompt=prompt.text,
        images=prompt.images,
        params=params,
        stream=stream,
        truncate=asked.truncate,
        adapter=asked.adapter_id or "",
    )


def held_schemas(request: TgiRequest) -> list[Held]:
    """Raises Invalid."""
    grammar = request.asked.grammar
    try:
        return [] if grammar is None else held_by_format("parameters.grammar", grammar)
    except WrongParameter as error:
        raise Invalid(f"grammar is not valid: {error.message}") from None


Check = tuple[bool, str]


def _checks(request: TgiRequest, asked: Parameters, offered: Capabilities, stream: bool) -> list[Check]:
    best_of = asked.best_of
    many = best_of is not None and best_of > 1
    return [
        (stream and many, "`best_of` != 1 is not supported when streaming tokens"),
        (
            stream and bool(asked.decoder_input_details),
            "`decoder_input_details` == true is not supported when streaming tokens",
        ),
        *_best_of_checks(best_of, offered),
        (many and not asked.sampled, "you must use sampling when `best_of` is > 1"),
        (_at_most(asked.temperature, 0), "`temperature` must be strictly positive"),
        (_at_most(asked.repetition_penalty, 0), "`repetition_penalty` must be strictly positive"),
        (_outside(asked.frequency_penalty, -2, 2), "`frequency_penalty` must be >= -2.0 and <= 2.0"),
        (_not_within(asked.top_p), "`top_p` must be > 0.0 and < 1.0"),
        (_not_within(asked.typical_p), "`typical_p` must be > 0.0 and < 1.0"),
        (_at_most(asked.top_k, 0), "`top_k` must be strictly positive"),
        (_at_most(asked.max_new_tokens, 0), "`max_new_tokens` must be strictly positive"),
        *_stop_checks(asked.stop or [], offered),
        (many and asked.seed is not None, "`seed` must not be set when `best_of` > 1"),
        (_outside(asked.seed, 0, (1 << 64) - 1), "`seed` must be >= 0 and < 2^64"),
        (
            _outside(asked.top_n_tokens, 0, offered.max_top_tokens),
            f"`top_n_tokens` must be >= 0 and <= {offered.max_top_tokens}. Given: {asked.top_n_tokens}",
        ),
        (not request.inputs, "`inputs` cannot be empty"),
        *_truncate_checks(asked.truncate, offered),
        (bool(asked.watermark), "`watermark` is not supported"),
    ]


def _best_of_checks(best_of: int | None, offered: Capabilities) -> list[Check]:
    if best_of is None or best_of == 1:
        return []
    if offered.max_best_of == 1:
        return [(True, "`best_of` is disabled: this model makes one text a request")]
    most = offered.max_best_of
    return [(not 0 < best_of <= most, f"`best_of` must be > 0 and <= {most}. Given: {best_of}")]


def _stop_checks(stop: list[str], offered: Capabilities) -> list[Check]:
    most = offered.max_stop_sequences
    return [
        (len(stop) > most, f"`stop` supports up to {most} stop sequences. Given: {len(stop)}"),
        ("" in stop, "`stop` must not hold an empty sequence"),
    ]


def _truncate_checks(truncate: int | None, offered: Capabilities) -> list[Check]:
    most = offered.max_input_tokens
    limit = "" if most is None else f" and less than {most}"
    wrong = truncate is not None and (truncate <= 0 or (most is not None and truncate > most))
    return [(wrong, f"`truncate` must be strictly positive{limit}. Given: {truncate}")]


def _at_most(value: float | None, limit: float) -> bool:
    return value is not None and value <= limit


def _outside(value: float | None, least: float, most: float) -> bool:
    return value is not None and not least <= value <= most


def _not_within(value: float | None) -> bool:
    return value is not None and not 0 < value < 1


def _grammar(grammar: dict[str, Any] | None, offered: Capabilities) -> Constraint | None:
    if grammar is None:
        return None
    try:
        constraint = response_format("grammar", grammar)
        if constraint is not None:
            check_offered("grammar", constraint, offered)
    except WrongParameter as error:
        raise Invalid(f"grammar is not valid: {error.message}") from None
    return constraint
