"""Our sampling parameters as vLLM's."""

import json
from typing import Any

from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

from msx_core.json_schema import MOST_LEVELS, too_deep
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import Constraint
from msx_sdk.generation import SamplingParams as Asked
from msx_vllm.checks import is_greedy

GUIDANCE = "guidance"
"""The backend of structured outputs that computes with llguidance."""
LENIENT = '"x-guidance": {"lenient": true}'


def sampling_params(asked: Asked, texts: int, most: int | None, *, stream: bool, backend: str) -> Any:
    """Parameters for so many texts of `most` tokens; of greedy texts vLLM makes one. `backend`: of structured
    outputs. Raises InvalidInput, and what vLLM raises."""
    ranked = texts > asked.n and asked.logprobs is None
    prompt_top = max(asked.prompt_top, asked.logprobs or 0) if asked.prompt_logprobs else None
    return SamplingParams(
        n=1 if is_greedy(asked) else texts,
        temperature=asked.temperature,
        top_k=asked.top_k,
        top_p=asked.top_p,
        min_p=asked.min_p,
        repetition_penalty=asked.repetition_penalty,
        frequency_penalty=asked.frequency_penalty,
        presence_penalty=asked.presence_penalty,
        logit_bias=dict(asked.logit_bias) or None,
        seed=asked.seed,
        stop=list(asked.stop) or None,
        stop_token_ids=list(asked.stop_token_ids) or None,
        allowed_token_ids=list(asked.allowed_token_ids) or None,
        bad_words=list(asked.bad_words) or None,
        skip_special_tokens=asked.skip_special_tokens,
        include_stop_str_in_output=asked.keep_stop,
        ignore_eos=asked.ignore_eos,
        min_tokens=asked.min_tokens,
        max_tokens=most,
        logprobs=0 if ranked else asked.logprobs,
        prompt_logprobs=prompt_top,
        structured_outputs=None if asked.constraint is None else _constraint(asked.constraint, backend),
        output_kind=RequestOutputKind.DELTA if stream else RequestOutputKind.FINAL_ONLY,
        skip_clone=True,  # nobody else has it
    )


def _constraint(constraint: Constraint, backend: str) -> Any:
    match constraint.kind:
        case "json_schema":
            return StructuredOutputsParams(json=_schema(constraint.value, lenient=backend == GUIDANCE))
        case "json_object":
            return StructuredOutputsParams(json_object=True)
        case "regex":
            return StructuredOutputsParams(regex=constraint.value)
        case "choice":
            return StructuredOutputsParams(choice=_choices(constraint.value))
        case "lark":
            return StructuredOutputsParams(grammar=constraint.value)


def _schema(value: str, *, lenient: bool) -> str:
    """The schema as it was sent. `lenient`: keywords that no text can be held to are ignored."""
    schema = _json(value)
    if too_deep(schema):
        raise InvalidInput(f"constraint: the json_schema is nested more than {MOST_LEVELS} levels deep")
    if not lenient or not isinstance(schema, dict):
        return value
    return f"{{{LENIENT}{', ' if schema else ''}{value.lstrip()[1:]}"


def _json(value: str) -> Any:
    """None for what is not JSON, which vLLM refuses."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _choices(value: str) -> list[str]:
    choices = _json(value)
    if not isinstance(choices, list) or not choices or not all(isinstance(one, str) and one for one in choices):
        raise InvalidInput("constraint: the choice is not a JSON list of one or more texts, none of them empty")
    return choices
