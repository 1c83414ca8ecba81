"""Plain predictions of a text model: a JSON object, the fields of a form, or the prompt itself."""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from msx_core.elements import TooManyElements, check_json
from msx_core.errors import InvalidInput
from msx_core.form_fields import FormFields
from msx_core.generation import Capabilities, ClassifyRequest, EmbedRequest, GenerateRequest, SamplingParams
from msx_core.generation.wire import encode
from msx_core.text_limits import DEFAULT_LIMITS, TextLimits, TooMuch, check
from msx_core.validation import wrong_value

T = TypeVar("T")
OfText = EmbedRequest | ClassifyRequest
Q = TypeVar("Q", EmbedRequest, ClassifyRequest)

TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
"""The types of a content's parts that are text, in OpenAI's words."""
PROMPTS = ("prompt", "messages", "inputs")
ALIASES = {"max_new_tokens": "max_tokens", "max_completion_tokens": "max_tokens"}
SAMPLING = frozenset(SamplingParams.__struct_fields__) - {"n", "best_of", "logprobs", "prompt_logprobs", "prompt_top"}
"""A plain prediction has exactly one text as its answer."""
TEMPLATE = frozenset({"tools", "chat_template_kwargs", "add_generation_prompt", "continue_final_message"})
REQUEST = TEMPLATE | {"priority", "truncate", "add_special_tokens"}
IGNORED = frozenset({"stream", "details", "decoder_input_details", "watermark", "return_full_text"})
"""Members of TGI's requests that are accepted if they are off. The answer is always a stream."""
STRUCTURED = frozenset(
    {
        "messages",
        "parameters",
        "tools",
        "chat_template_kwargs",
        "logit_bias",
        "stop_token_ids",
        "allowed_token_ids",
        "bad_words",
        "constraint",
    }
)
"""Members that are JSON where a form or gRPC has text."""
_UNSAID = (
    " among the fields; over HTTP a prompt alone needs the header Content-Type: text/plain, a JSON object "
    "application/json (curl -d sends a form unless -H names another)"
)


def request_of_item(
    item: dict[str, Any], offered: Capabilities, limits: TextLimits = DEFAULT_LIMITS
) -> GenerateRequest | OfText:
    """Raises InvalidInput, which names the parameter and its limit.

    Values that are not given are the model's defaults. Without defaults it is greedy, unless there is a temperature, or
    `do_sample` as in TGI.
    """
    try:
        request = _request(item, offered)
        check(request, limits)
        encode(request)
    except TooMuch as error:
        raise InvalidInput(str(error).removeprefix("params.")) from None
    except UnicodeEncodeError:
        raise InvalidInput("a text of the request has half of a surrogate pair, which is not a character") from None
    return request


def _request(item: dict[str, Any], offered: Capabilities) -> GenerateRequest | OfText:
    values, are_text = _values(item)
    values = {name: value for name, value in values.items() if value is not None}
    if offered.embed and not offered.generate:
        return _of_text(values, EmbedRequest, "an embedding", strict=not are_text)
    if offered.classify and not offered.generate:
        return _of_text(values, ClassifyRequest, "a classification", strict=not are_text)
    request = _prompt(values, of_fields=are_text)
    if "messages" in request:
        _check_messages(request["messages"], offered)
    given = _flat({name: value for name, value in values.items() if name not in PROMPTS})
    params = _sampling(given, request, msgspec.structs.asdict(offered.sampling))
    request["params"] = _converted(params, SamplingParams, _given_names(given), strict=not are_text)
    return _converted(request, GenerateRequest, {}, strict=not are_text)


def _of_text(values: dict[str, Any], kind: type[Q], what: str, *, strict: bool) -> Q:
    aliases = {name: value for name, value in values.items() if name in ("prompt", "inputs")}
    for name in aliases:
        values["input"] = values.pop(name)
    if unknown := sorted(values.keys() - set(kind.__struct_fields__)):
        known = ", ".join(kind.__struct_fields__)
        raise InvalidInput(f"{unknown[0]}: unknown parameter of {what}; known are {known}")
    return _converted(values, kind, {}, strict=strict)


def _values(item: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Values by parameter name, and whether they are texts that are still to be converted."""
    if not item.keys() & {"body", "data"} and not (isinstance(item, FormFields) and item.is_no_form):
        return {name: _structured(name, _text(name, value)) for name, value in item.items()}, True
    body = item.get("body", item.get("data"))
    if isinstance(body, (bytes, bytearray)):
        body = _object(body) or _text("prompt", body)
    if isinstance(body, str):
        body = {"prompt": body}
    if not isinstance(body, dict):
        raise InvalidInput('expected a JSON object such as {"prompt": "The with statement"}, or the prompt as text')
    return body, False


def _object(body: bytes | bytearray) -> dict[str, Any] | None:
    """JSON that gRPC and some HTTP clients send without a content type."""
    try:
        check_json(body)
        value = msgspec.json.decode(body)
    except TooManyElements as error:
        raise InvalidInput(f"the request: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.keys() & {*PROMPTS} else None


def _text(name: str, value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, (bytes, bytearray)) else value
    except UnicodeDecodeError:
        raise InvalidInput(f"{name}: the text is not UTF-8") from None


def _structured(name: str, value: Any) -> Any:
    if name not in STRUCTURED or not isinstance(value, str):
        return value
    try:
        check_json(value.encode())
        return msgspec.json.decode(value)
    except (TooManyElements, msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"{name}: expected JSON: {error}") from None


def _prompt(values: dict[str, Any], *, of_fields: bool) -> dict[str, Any]:
    given = [name for name in PROMPTS if values.get(name) is not None]
    if len(given) != 1:
        found = " and ".join(given) or f"none{_UNSAID if of_fields else ''}"
        raise InvalidInput(f"prompt: expected exactly one of prompt, messages and inputs, found {found}")
    value = values[given[0]]
    if given[0] == "messages":
        return {"messages": value, "add_special_tokens": False}  # the template writes them
    if not value or not isinstance(value, (str, list)):
        raise InvalidInput(f"{given[0]}: expected a text of at least one character, or token ids")
    return {"prompt": value}


def _check_messages(messages: Any, offered: Capabilities) -> None:
    """A worker fetches nothing and checks no images, so that a handler never sees a part that is not text."""
    if not offered.chat:
        raise InvalidInput("messages: this model has no chat template; send a prompt")
    kinds = "a prediction's messages are text alone" if offered.max_images else "this model reads text alone"
    remedy = "; /v1/chat/completions takes images" if offered.max_images else ""
    for place, kind in _part_kinds(messages):
        if kind not in TEXT_PARTS:
            raise InvalidInput(f'{place}: {kinds}, {{"type": "text", "text": …}}, not {kind!r}{remedy}')


def _part_kinds(messages: Any) -> Iterator[tuple[str, Any]]:
    """The places and types of the parts of contents that are lists; a handler refuses what is no message."""
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        for index, part in enumerate(content if isinstance(content, list) else ()):
            kind = part.get("type", "text") if isinstance(part, dict) else "text"
            yield f"messages[{number}].content[{index}]", kind


def _flat(given: dict[str, Any]) -> dict[str, Any]:
    """TGI's `parameters` and the top-level parameters in one dict."""
    nested = given.get("parameters", {})
    if not isinstance(nested, dict):
        raise InvalidInput(f"parameters: expected an object, not {type(nested).__name__}")
    top = {name: value for name, value in given.items() if name != "parameters"}
    return {**top, **{name: value for name, value in nested.items() if value is not None}}


def _sampling(given: dict[str, Any], request: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The members of SamplingParams; those of the request itself are put into it."""
    params: dict[str, Any] = {}
    sampled = given.pop("do_sample", None)
    for name, value in given.items():
        if name in REQUEST:
            request[name] = value
        elif ALIASES.get(name, name) in SAMPLING:
            params[ALIASES.get(name, name)] = value
        elif name not in IGNORED or (value is True and name != "stream"):
            raise InvalidInput(f"{name}: unknown parameter of a plain prediction; known are {', '.join(_known())}")
    if isinstance(params.get("stop"), str):
        params["stop"] = [params["stop"]]
    params = {**{name: value for name, value in defaults.items() if value is not None}, **params}
    if sampled is not None and "temperature" not in given:
        wanted = sampled in (True, "true", "True", "1")
        params["temperature"] = (params.get("temperature") or 1.0) if wanted else 0.0
    params.setdefault("temperature", 0.0)
    return params


def _known() -> list[str]:
    return sorted({*PROMPTS, *SAMPLING, *REQUEST, *ALIASES, "do_sample", "parameters"})


def _given_names(given: dict[str, Any]) -> dict[str, str]:
    """Our parameter names to those that the client used."""
    return {ours: theirs for theirs, ours in ALIASES.items() if theirs in given}


def _converted(values: dict[str, Any], kind: type[T], names: dict[str, str], *, strict: bool) -> T:
    try:
        return msgspec.convert(values, kind, strict=strict, str_keys=True)
    except msgspec.ValidationError as error:
        name, expected = wrong_value(error)
        raise InvalidInput(f"{names.get(name, name) or 'request'}: {expected}") from None
