"""OpenAI's sampling parameters, and those that vLLM's and TGI's users add to them."""

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from msx_core.generation import (
    BeamSearch,
    Capabilities,
    Constraint,
    GenerateRequest,
    SamplingDefaults,
    SamplingParams,
)
from msx_core.generation.wire import MOST_INTEGER, Integer, Natural, Positive, Tokens, Words
from msx_frontend.generation.constraint import StructuredOutputs, constraint_name, constraint_of, held_schemas
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.schemas import Held, ignored
from msx_frontend.generation.truncation import Truncation
from msx_frontend.generation.unserved import refuse, unserved_values
from msx_frontend.models.versions.model_version import ModelVersion

MOST_TOP_LOGPROBS = 20
"""OpenAI's limit."""
SEEDS = 1 << 64

NO_DEFAULTS = SamplingDefaults()

N = TypeVar("N", bound=float)
TopLogprobs = Annotated[int, Meta(ge=0, le=MOST_TOP_LOGPROBS)]
Bias = Annotated[float, Meta(ge=-100, le=100)]


class StreamOptions(msgspec.Struct):
    include_usage: bool = False
    continuous_usage_stats: bool = False


class SamplingFields(msgspec.Struct, kw_only=True):
    """null means that the member was not given. Members of any type are refused on all routes."""

    cache_salt: Any = None
    ec_transfer_params: Any = None
    guided_whitespace_pattern: Any = None
    kv_transfer_params: Any = None
    logits_processors: Any = None
    prompt_embeds: Any = None
    prompt_logprobs: Any = None
    repetition_detection: Any = None
    return_tokens_as_token_ids: Any = None
    structural_tag: Any = None
    thinking_token_budget: Any = None
    vllm_xargs: Any = None
    response_format: dict[str, Any] | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: dict[str, Any] | str | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=MOST_INTEGER)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    typical_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[float, Meta(gt=0)] | None = None
    logit_bias: dict[int, Bias] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[Integer] | None = None
    include_stop_str_in_output: bool | None = None
    allowed_token_ids: Annotated[Tokens, Meta(min_length=1)] | None = None
    bad_words: Words | None = None
    skip_special_tokens: bool | None = None
    ignore_eos: bool | None = None
    min_tokens: Natural | None = None
    max_tokens: Positive | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    truncate_prompt_tokens: Truncation | None = None
    add_special_tokens: bool | None = None
    priority: Integer | None = None
    speculative: bool | None = None
    use_beam_search: bool | None = None
    length_penalty: Annotated[float, Meta(ge=-10, le=10)] | None = None
    early_stopping: bool | Literal["never"] | None = None

    def __post_init__(self) -> None:
        """Raises WrongParameter."""
        names, values_of, nothing = unserved_values(type(self))
        if (values := values_of(self)) != nothing:
            refuse(names, values)

    @property
    def told_usage(self) -> StreamOptions:
        """Raises WrongParameter, as OpenAI does, if the reply is not a stream."""
        options = self.stream_options or StreamOptions()
        if self.stream_options is not None and not self.stream:
            raise WrongParameter("stream_options", "only together with stream: true")
        if options.continuous_usage_stats and not options.include_usage:
            raise WrongParameter("stream_options.continuous_usage_stats", "only together with include_usage: true")
        return options


def names_of(fields: SamplingFields, **others: str) -> dict[str, str]:
    """The client's names of the members of `GenerateRequest`; `others` are the route's own."""
    names = {"truncate": "truncate_prompt_tokens", "keep_stop": "include_stop_str_in_output", **others}
    constraint = constraint_name(fields)
    return names if constraint is None else {**names, "constraint": constraint}


def ignored_of(fields: SamplingFields, version: ModelVersion, others: list[Held] | None = None) -> list[str]:
    """The places of limits that are not applied, in these fields and in `others`.

    Raises WrongParameter for a schema that must be kept to as it is.
    """
    keywords = version.schema.capabilities.unheld_keywords if version.schema.capabilities else ()
    return ignored([*held_schemas(fields), *(others or [])], keywords)


def sampling_params(
    fields: SamplingFields,
    offered: Capabilities,
    *,
    temperature: float = 1.0,
    max_tokens: int | None = None,
    best_of: int | None = None,
    logprobs: int | None = None,
    prompt_logprobs: bool = False,
    prompt_top: int | None = None,
    constraint: Constraint | None = None,
    keep_special: bool = False,
    defaults: SamplingDefaults = NO_DEFAULTS,
) -> SamplingParams:
    """The last members are what a route makes of its own fields; `defaults` are the model's, `temperature` is the
    route's where the model has none.

    Raises WrongParameter.
    """
    if prompt_top is not None and fields.stream:
        raise WrongParameter("prompt_logprobs", "not together with stream: they are told once, in a whole reply")
    asked = constraint_of(fields, offered)
    if constraint is not None and asked is not None:
        raise WrongParameter("tool_choice", "a call that must be made, and a format of the answer, exclude each other")
    return SamplingParams(
        temperature=_first(fields.temperature, defaults.temperature, temperature),
        top_k=max(_first(fields.top_k, defaults.top_k, 0), 0),
        top_p=_first(fields.top_p, defaults.top_p, 1.0),
        min_p=_first(fields.min_p, defaults.min_p, 0.0),
        typical_p=_first(fields.typical_p, defaults.typical_p, 1.0),
        repetition_penalty=_first(fields.repetition_penalty, defaults.repetition_penalty, 1.0),
        frequency_penalty=_first(fields.frequency_penalty, None, 0.0),
        presence_penalty=_first(fields.presence_penalty, None, 0.0),
        logit_bias=fields.logit_bias or {},
        seed=None if fields.seed is None else fields.seed % SEEDS,
        stop=stop_sequences(fields.stop, offered),
        stop_token_ids=tuple(fields.stop_token_ids or ()),
        allowed_token_ids=fields.allowed_token_ids or (),
        bad_words=fields.bad_words or (),
        skip_special_tokens=not keep_special and fields.skip_special_tokens is not False,
        keep_stop=bool(fields.include_stop_str_in_output),
        ignore_eos=bool(fields.ignore_eos),
        min_tokens=_min_tokens(fields.min_tokens or 0, max_tokens or fields.max_tokens),
        max_tokens=max_tokens or fields.max_tokens,
        n=fields.n or 1,
        best_of=best_of,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs or prompt_top is not None,
        prompt_top=prompt_top or 0,
        constraint=constraint or asked,
        beam_search=_beam_search(fields, offered),
        speculative=fields.speculative is not False,
    )


def _beam_search(fields: SamplingFields, offered: Capabilities) -> BeamSearch | None:
    """Raises WrongParameter."""
    if not fields.use_beam_search:
        return None
    if not offered.beam_search:
        raise WrongParameter("use_beam_search", "this model does not search with beams")
    if fields.stream:
        raise WrongParameter("use_beam_search", "not together with stream: the best text is known at the end")
    penalty = 1.0 if fields.length_penalty is None else fields.length_penalty
    return BeamSearch(length_penalty=penalty, early_stopping=fields.early_stopping or False)


def stop_sequences(stop: str | list[str] | None, offered: Capabilities) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(stops) > offered.max_stop_sequences:
        raise WrongParameter("stop", f"at most {offered.max_stop_sequences} sequences, not {len(stops)}")
    if "" in stops:
        raise WrongParameter("stop", "a sequence of no characters would stop before the first token")
    return stops


def _min_tokens(least: int, most: int | None) -> int:
    if most is not None and least > most:
        raise WrongParameter("min_tokens", f"at most max_tokens ({most}), not {least}")
    return least


def _first(asked: N | None, models: N | None, otherwise: N) -> N:
    """The value of the request, else of the model, else of the API."""
    return asked if asked is not None else otherwise if models is None else models


def fitting(request: GenerateRequest) -> GenerateRequest:
    """The same, with a text that ends where the context does: for APIs whose clients send a limit without knowing the
    model."""
    return replace(request, params=replace(request.params, fit_context=True))
