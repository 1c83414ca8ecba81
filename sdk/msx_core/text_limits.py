"""The limits of lists and texts in a request to a language model: one table for all APIs.

Each limit is a key of config.properties. A member without a line in the table is an error of the API's author.
"""

from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from msx_core.values import Positive


class TextLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes are bytes of the value as JSON, lengths characters, the others numbers of items. `max_answers_size` is of
    what workers answer to the texts of one request, as they send it."""

    max_texts_per_request: Positive = 2048
    max_texts_size: Positive = 6553500
    max_prompt_token_ids: Positive = 1 << 20
    max_token_ids: Positive = 16384
    max_stop_sequences: Positive = 16
    max_stop_length: Positive = 1000
    max_stop_token_ids: Positive = 1024
    max_logit_bias: Positive = 1024
    max_bad_words: Positive = 1024
    max_bad_word_length: Positive = 256
    max_messages: Positive = 10_000
    max_message_parts: Positive = 10_000
    max_tools: Positive = 512
    max_chat_template_length: Positive = 64 << 10
    max_template_values_size: Positive = 256 << 10
    max_grammar_size: Positive = 256 << 10
    max_metadata_size: Positive = 16 << 10
    max_option_size: Positive = 16 << 10
    max_answers_size: Positive = 16 << 20


DEFAULT_LIMITS = TextLimits()


class TooMuch(ValueError):
    """`name` is the member, `text` the limit and its key."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        super().__init__(f"{name}: {text}")


def too_much(unit: str, found: int, most: int, key: str) -> str:
    return f"at most {most} {unit} are allowed, not {found}; {key} of the server's config.properties is the limit"


class Rule(NamedTuple):
    """The keys of a member's limits; "" for none.

    `ids` counts a list of token ids in place of `items`, `parts` the lists within the items of a list.
    """

    items: str = ""
    unit: str = "items"
    length: str = ""
    size: str = ""
    ids: str = ""
    parts: str = ""

    def check(self, name: str, value: Any, limits: TextLimits, sent: int | None) -> None:
        if self.items and not isinstance(value, str):
            self._check_items(name, value, limits)
        if self.length:
            most = getattr(limits, self.length)
            for text in (value,) if isinstance(value, str) else value:
                if len(text) > most:
                    raise TooMuch(name, too_much("characters", len(text), most, self.length))
        if self.size and (sent is None or sent > getattr(limits, self.size)):
            measured = _without_images(value) if self.parts and isinstance(value, list) else value
            _check_size(name, measured, getattr(limits, self.size), self.size)

    def _check_items(self, name: str, value: Any, limits: TextLimits) -> None:
        if self.ids and value and isinstance(value[0], int):
            _check_count(name, value, limits, self.ids, "token ids")
            return
        _check_count(name, value, limits, self.items, self.unit)
        for number, one in enumerate(value) if self.ids or self.parts else ():
            if isinstance(one, (list, tuple)):
                _check_count(f"{name}[{number}]", one, limits, self.ids, "token ids")
            elif isinstance(one, dict):
                self._check_parts(f"{name}[{number}]", one, limits)

    def _check_parts(self, name: str, item: dict[str, Any], limits: TextLimits) -> None:
        for member, value in item.items() if self.parts else ():
            if isinstance(value, list):
                _check_count(f"{name}.{member}", value, limits, self.parts, "parts")


TEXTS = Rule("max_texts_per_request", "texts", size="max_texts_size", ids="max_prompt_token_ids")
TEXT = Rule(size="max_texts_size")
MESSAGES = Rule("max_messages", "messages", size="max_texts_size", parts="max_message_parts")
IDS = Rule("max_texts_per_request", "texts", ids="max_token_ids")
GRAMMAR = Rule(size="max_grammar_size")
OPTION = Rule(size="max_option_size")
"""Names, and what a client chooses by a word."""

RULES: dict[str, Rule] = {
    **dict.fromkeys(("prompt", "input", "inputs", "texts", "sentences", "documents"), TEXTS),
    **dict.fromkeys(("text_1", "text_2", "queries", "items", "data_1", "data_2"), TEXTS),
    **dict.fromkeys(("text", "text_input", "query", "pair", "source_sentence", "instructions"), TEXT),
    "messages": MESSAGES,
    "ResponsesRequest.input": MESSAGES,
    "system": Rule("max_message_parts", "parts", size="max_texts_size"),
    "tools": Rule("max_tools", "tools", size="max_texts_size"),
    **dict.fromkeys(("stop", "stop_sequences"), Rule("max_stop_sequences", "sequences", length="max_stop_length")),
    "stop_token_ids": Rule("max_stop_token_ids", "token ids"),
    "logit_bias": Rule("max_logit_bias", "tokens"),
    "bad_words": Rule("max_bad_words", "words", length="max_bad_word_length"),
    **dict.fromkeys(("allowed_token_ids", "tokens", "ids", "context"), IDS),
    "chat_template": Rule(length="max_chat_template_length"),
    "chat_template_kwargs": Rule(size="max_template_values_size"),
    **dict.fromkeys(("response_format", "output_format", "format", "json", "regex", "choice", "grammar"), GRAMMAR),
    **dict.fromkeys(("json_schema", "schema"), GRAMMAR),
    "Constraint.value": GRAMMAR,
    **dict.fromkeys(("guided_json", "guided_regex", "guided_choice", "guided_grammar"), GRAMMAR),
    "metadata": Rule(size="max_metadata_size"),
    "options": OPTION,
    **dict.fromkeys(
        (
            "model",
            "name",
            "adapter",
            "adapter_id",
            "id",
            "lora_name",
            "prompt_name",
            "prompt_cache_key",
            "previous_response_id",
        ),
        OPTION,
    ),
    **dict.fromkeys(
        ("tool_choice", "reasoning_effort", "effort", "think", "verbosity", "include", "truncation"), OPTION
    ),
    **dict.fromkeys(
        ("truncation_direction", "encoding_format", "scale", "return_protocol", "input_type", "embedding_types"), OPTION
    ),
}
"""Rules by a member's name, or a struct's and a member's."""

MADE_BY_SERVER = ("adapter_files", "images", "owner")


def check(message: msgspec.Struct, limits: TextLimits, sent: int | None = None, prefix: str = "") -> None:
    """Raises TooMuch. What is no longer as a whole (`sent` bytes of JSON) than a limit is not measured."""
    names, values_of, nothing, rules = rules_of(type(message))
    values = values_of(message)
    if values == nothing:
        return
    for name, value, rule in zip(names, values, rules, strict=True):
        if isinstance(value, msgspec.Struct) and rule is None:
            check(value, limits, sent, f"{prefix}{name}.")
        elif value is not None and rule is not None:
            rule.check(f"{prefix}{name}", value, limits, sent)


class KindRules(NamedTuple):
    """The members of a struct that have limits; a rule is None for one that is a struct with limits of its own."""

    names: tuple[str, ...]
    values_of: Callable[[Any], Any]
    nothing: Any
    """Stands for a member that is not given."""
    rules: tuple[Rule | None, ...]


@cache
def rules_of(kind: type[msgspec.Struct]) -> KindRules:
    """Raises TypeError for a list or text without a limit."""
    found = dict(_ruled(kind))
    names = tuple(found)
    values_of = attrgetter(*names) if len(names) > 1 else lambda it: tuple(getattr(it, name) for name in names)
    return KindRules(names, values_of, (None,) * len(names), tuple(found.values()))


def _ruled(kind: type[msgspec.Struct]) -> Iterator[tuple[str, Rule | None]]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        kinds = _alternatives(field.type)
        if field.name in MADE_BY_SERVER or all(isinstance(one, _SHORT) for one in kinds):
            continue
        if all(isinstance(one, (inspect.StructType, *_SHORT)) for one in kinds):
            yield field.name, None
        elif any(isinstance(one, inspect.AnyType) for one in kinds):
            yield field.name, OPTION
        elif rule := RULES.get(f"{kind.__name__}.{field.name}") or RULES.get(field.name):
            yield field.name, rule
        else:
            raise TypeError(f"{kind.__name__}.{field.name} needs a limit: a line in RULES of {__name__}")


_SHORT = (
    inspect.NoneType,
    inspect.BoolType,
    inspect.IntType,
    inspect.FloatType,
    inspect.LiteralType,
    inspect.EnumType,
)


def _alternatives(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    if isinstance(kind, inspect.Metadata):
        return _alternatives(kind.type)
    return tuple(kind.types) if isinstance(kind, inspect.UnionType) else (kind,)


def _without_images(messages: list[Any]) -> list[Any]:
    """Messages without images' URLs, which have limits of their own (`max_image_size`)."""
    return [
        {name: [_no_image(part) for part in value] if isinstance(value, list) else value for name, value in one.items()}
        if isinstance(one, dict)
        else one
        for one in messages
    ]


def _no_image(part: Any) -> Any:
    """Also without those of a tool's result, which is a part with parts."""
    if isinstance(part, dict) and isinstance(inner := part.get("content"), list):
        return {**part, "content": [_no_own_image(one) for one in inner]}
    return _no_own_image(part)


def _no_own_image(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "image":  # Anthropic's
        return {**part, "source": None}
    return {**part, "image_url": None} if "image_url" in part else part


def _check_count(name: str, value: Any, limits: TextLimits, key: str, unit: str) -> None:
    if len(value) > (most := getattr(limits, key)):
        raise TooMuch(name, too_much(unit, len(value), most, key))


def _check_size(name: str, value: Any, most: int, key: str) -> None:
    if isinstance(value, str) and 6 * len(value) + 2 <= most:  # a character has six bytes at most
        return
    if (size := len(msgspec.json.encode(value))) > most:
        raise TooMuch(name, too_much("bytes of JSON", size, most, key))
