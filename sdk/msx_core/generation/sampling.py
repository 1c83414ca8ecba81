"""How the tokens of a text are chosen."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from msx_core.generation.wire import Integer, Natural, Positive, Share, Tokens, Words


class Constraint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The form that the text must have. `value` is a JSON schema, a regular expression, a Lark grammar, or for `choice`
    a JSON list of texts; it is unused for `json_object`, which stands for any JSON object."""

    kind: Literal["json_schema", "json_object", "regex", "choice", "lark"]
    value: str = ""


class BeamSearch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Texts are searched for with as many beams as `best_of`, or `n`, as Hugging Face transformers does: of the beams'
    continuations the likeliest go on, and `n` texts with the best scores come of it. A score is the sum of
    log-probabilities divided by the length to the power of `length_penalty`."""

    length_penalty: Annotated[float, Meta(ge=-10, le=10)] = 1.0
    early_stopping: bool | Literal["never"] = False
    """When the search ends: with as many texts as beams (True), when a beam at its present length cannot become better
    than those (False), or at any length (`never`)."""


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the next token is chosen, and when the text ends. The defaults change nothing.

    Order of application: logit bias and penalties, allowed tokens, bad words, constraint, temperature, top-k, top-p,
    min-p, typical.
    """

    temperature: Annotated[float, Meta(ge=0, le=100)] = 1.0
    """0 is greedy: the likeliest token."""
    top_k: Natural = 0
    """0: the whole vocabulary."""
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    min_p: Share = 0.0
    typical_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    repetition_penalty: Annotated[float, Meta(gt=0)] = 1.0
    """Divides positive logits of tokens in prompt and text, multiplies negative ones (Keskar et al. 2019)."""
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] = 0.0
    """Subtracted once per occurrence in the text so far."""
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] = 0.0
    """Subtracted from what has occurred in the text so far."""
    logit_bias: dict[int, float] = {}
    """Token id to the bias that is added to its logit."""
    seed: Annotated[int, Meta(ge=0)] | None = None
    """Seed below 2**64. The same seed draws the same numbers, whatever else is in the batch."""
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[Integer, ...] = ()
    allowed_token_ids: Tokens = ()
    """The only tokens that may be chosen; empty: all. The text ends by itself only if its end is among them."""
    bad_words: Words = ()
    """Words that must not occur in the text, at its beginning or after a space."""
    skip_special_tokens: bool = True
    """Special tokens are left out of the text; the token that ends it is always left out."""
    keep_stop: bool = False
    """Leave the matched stop string in the text, as TGI does; OpenAI takes it out."""
    ignore_eos: bool = False
    min_tokens: Natural = 0
    max_tokens: Positive | None = None
    """None: as many as fit the context."""
    fit_context: bool = False
    """Lower `max_tokens` to what the context leaves, where that is less; otherwise such a request is refused."""
    n: Annotated[int, Meta(ge=1, le=128)] = 1
    best_of: Annotated[int, Meta(ge=1, le=128)] | None = None
    """Generate this many texts and return the `n` with the highest mean log-probability; not with streaming."""
    logprobs: Annotated[int, Meta(ge=0, le=100)] | None = None
    """None: no log-probabilities. 0: of the chosen tokens. k: also the k likeliest at each place.

    They are of the model's own distribution, before penalties and temperature.
    """
    prompt_logprobs: bool = False
    """Log-probabilities of the prompt's tokens, too."""
    prompt_top: Annotated[int, Meta(ge=0, le=100)] = 0
    """Number of the likeliest tokens at each place of the prompt, with `prompt_logprobs`; or as many as `logprobs` if
    that is more."""
    constraint: Constraint | None = None
    beam_search: BeamSearch | None = None
    """The text is searched for, and nothing is drawn; not with streaming."""
    speculative: bool = True
    """False: the text is made token by token even if the model's configuration says `speculative`."""


class SamplingDefaults(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The model's defaults for members of `SamplingParams` that a request does not give; None: the API's default."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
