"""Texts that a constraint allows, with tokenizers of every kind."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer
from tokenizers import Tokenizer

from msx_core.json_schema import UNHELD
from msx_llm.sampling import Constraints, ConstraintState
from msx_llm.sampling import constraint as module
from msx_llm.sampling.compiling import compiled
from msx_llm.sampling.constraint import KEPT
from msx_sdk import InvalidInput
from msx_sdk.generation import Constraint
from tests.llm.tokenizers_of_tests import EXAMPLE, byte_level, pieces, word_pieces

KINDS: dict[str, tuple[Tokenizer, int]] = {
    "bytes": (byte_level(), 262),
    "pieces": (pieces(), 2),
    "newer pieces": (pieces(legacy=False), 2),
    "example": (Tokenizer.from_file(str(EXAMPLE / "tokenizer.json")), 1),
}
CONSTRAINTS = {
    kind: Constraints(tokenizer.to_str(), {end}, tokenizer.get_vocab_size()) for kind, (tokenizer, end) in KINDS.items()
}
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}

DEEP: Any = {"type": "string"}
for _ in range(60):
    DEEP = {"anyOf": [DEEP]}


def walk(kind: str, constraint: Constraint, seed: int) -> str:
    """A text of random tokens that the constraint allows, up to the end."""
    tokenizer, end = KINDS[kind]
    state, random = CONSTRAINTS[kind].compile(constraint), np.random.default_rng(seed)
    tokens: list[int] = []
    for _ in range(2_000):
        allowed = np.flatnonzero(state.mask())
        ending = end in allowed and random.random() < 0.3
        token = end if ending else int(random.choice(allowed))
        assert state.accept(token), state.failure
        if token == end:
            return decoded(tokenizer, tokens)
        tokens.append(token)
    raise AssertionError("it never ends")


def decoded(tokenizer: Tokenizer, tokens: list[int]) -> str:
    """As the continuation of a text: some decoders take the space off the first token."""
    before = tokenizer.encode("a", add_special_tokens=False).ids
    return str(tokenizer.decode(before + tokens))[len(tokenizer.decode(before)) :]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_json_of_a_schema(kind: str, seed: int) -> None:
    value = json.loads(walk(kind, Constraint(kind="json_schema", value=json.dumps(SCHEMA)), seed))
    assert value.keys() == {"name", "age"}
    assert len(value["name"]) <= 8
    assert 0 <= value["age"] <= 99


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["yes", " yes and no", 'é😀\n\\"quoted"', "(a|b)*"])
def test_a_choice_is_that_text(kind: str, text: str) -> None:
    assert walk(kind, Constraint(kind="choice", value=json.dumps([text])), 0) == text


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1), st.integers(0))
def test_one_of_the_choices(texts: list[str], seed: int) -> None:
    assert walk("bytes", Constraint(kind="choice", value=json.dumps(texts)), seed) in texts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_other_kinds(kind: str, seed: int) -> None:
    assert walk(kind, Constraint(kind="regex", value="(yes|no) [0-9]{3}"), seed)[-3:].isdigit()
    assert walk(kind, Constraint(kind="lark", value='start: "a" start | "b"'), seed).endswith("b")


def test_any_json_object() -> None:
    constraint = Constraint(kind="json_object")
    state = CONSTRAINTS["bytes"].compile(constraint)
    accept(state, "bytes", '{"a": [1, {"b": null}],\n    "c": "é"}')
    assert allowed(state) == [262]


def test_whitespace_has_an_end() -> None:
    state = CONSTRAINTS["bytes"].compile(Constraint(kind="json_object"))
    accept(state, "bytes", "{\n" + " " * 40)
    tokenizer = KINDS["bytes"][0]
    assert not {tokenizer.decode([token]) for token in allowed(state)} & {" ", "\n", "\t"}


def test_complete_means_that_only_the_end_may_follow() -> None:
    state = CONSTRAINTS["bytes"].compile(Constraint(kind="choice", value='["yes"]'))
    assert not state.is_stopped
    accept(state, "bytes", "yes")
    assert state.is_stopped
    assert allowed(state) == [262]
    assert state.accept(262)


def test_several_ends() -> None:
    constraints = Constraints(byte_level().to_str(), {262, 5}, 300)
    state = constraints.compile(Constraint(kind="regex", value="yes"))
    accept(state, "bytes", "yes")
    assert allowed(state) == [5, 262]


@pytest.mark.parametrize("vocab_size", [100, 263, 1_000])
def test_masks_are_as_wide_as_the_models_logits(vocab_size: int) -> None:
    constraints = Constraints(byte_level().to_str(), {3}, vocab_size)
    assert constraints.compile(Constraint(kind="regex", value=".*")).mask().shape == (vocab_size,)


def test_what_is_not_allowed_fails_this_text_only() -> None:
    constraint = Constraint(kind="regex", value="yes")
    state = CONSTRAINTS["bytes"].compile(constraint)
    assert not state.accept(3)
    assert state.failure is not None
    assert state.failure.status == 400
    assert state.failure.message.startswith("constraint: it cannot be followed any further")
    assert CONSTRAINTS["bytes"].compile(constraint).failure is None


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("regex", "(", "unclosed group"),
        ("regex", "(?=a)b", "look-around"),
        ("regex", "(a{1000}){1000}b", "too many expressions"),
        ("lark", "start: foo", 'unknown name: "foo"'),
        ("lark", "start: a\na: a", "there is not a text that it allows"),
        ("json_schema", {"$ref": "#"}, "there is not a text that it allows"),
        ("json_schema", {"type": "foo"}, "Invalid type: foo"),
        ("json_schema", {"type": "integer", "minimum": 10**30}, "Failed to generate regex for integer range"),
        ("json_schema", DEEP, "more than 100 levels deep"),
        ("json_schema", {"$ref": "#/nope"}, "Pointer '/nope' does not exist"),
        ("json_schema", {"type": "integer", "minimum": 5, "maximum": 3}, "Unsatisfiable schema"),
        ("regex", "a" * 40_000, "the regex has 40000 characters, the limit is 32768"),
        ("choice", ["\ud800"], "invalid choice"),
    ],
)
def test_what_is_wrong_is_named(kind: str, value: Any, reason: str) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    with pytest.raises(InvalidInput) as caught:
        CONSTRAINTS["bytes"].compile(Constraint(kind=kind, value=text))  # type: ignore[arg-type]
    assert caught.value.message.startswith("constraint: ")
    assert reason in caught.value.message
    assert "\n" not in caught.value.message


def test_a_deep_schema_does_not_end_the_process() -> None:
    links = {str(i): {"properties": {"": {"$ref": f"#/$defs/{i + 1}"}}} for i in range(4_000)}
    schema = {"$ref": "#/$defs/0", "$defs": {**links, "4000": {}}}
    CONSTRAINTS["bytes"].compile(Constraint(kind="json_schema", value=json.dumps(schema)))


def test_compiled_constraints_are_kept_but_their_states_are_apart() -> None:
    constraint = Constraint(kind="regex", value="(yes|no)")
    one, other = (CONSTRAINTS["bytes"].compile(constraint) for _ in range(2))
    accept(one, "bytes", "y")
    assert allowed(one) != allowed(other)


def test_the_constraints_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    values = []

    def counted(tokenizer: LLTokenizer, constraint: Constraint) -> LLMatcher:
        values.append(constraint.value)
        return compiled(tokenizer, constraint)

    monkeypatch.setattr(module, "compiled", counted)
    constraints = Constraints(byte_level().to_str(), {262}, 263)
    for number in range(KEPT):
        for value in ("often", str(number)):
            constraints.compile(Constraint(kind="regex", value=value))
    assert values == ["often", *map(str, range(KEPT))]
    for value in ("often", str(KEPT - 1), "0"):
        constraints.compile(Constraint(kind="regex", value=value))
    assert values[KEPT + 1 :] == ["0"]


def test_a_tokenizer_whose_tokens_are_not_bytes() -> None:
    with pytest.raises(ValueError, match="decoder"):
        Constraints(word_pieces().to_str(), {2}, 7)


def test_a_model_without_an_end() -> None:
    with pytest.raises(ValueError, match="eos_token_id"):
        Constraints(byte_level().to_str(), (), 263)


def allowed(state: ConstraintState) -> list[int]:
    return [int(token) for token in np.flatnonzero(state.mask())]


def accept(state: ConstraintState, kind: str, text: str) -> None:
    for token in KINDS[kind][0].encode(text, add_special_tokens=False).ids:
        assert state.mask()[token]
        assert state.accept(token)


OPENAPI = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "password", "maxLength": 2},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "maxItems": 2},
    },
    "required": ["id"],
    "minProperties": 1,
    "additionalProperties": False,
    "dependentRequired": {"tags": ["id"]},
    "unevaluatedProperties": False,
}


def test_what_a_grammar_cannot_hold_is_ignored_and_the_rest_is_held() -> None:
    for seed in range(10):
        value = json.loads(walk("bytes", Constraint(kind="json_schema", value=json.dumps(OPENAPI)), seed))
        assert len(value["id"]) <= 2
        assert set(value.get("tags", [])) <= {"a", "b"}


@pytest.mark.parametrize("name", UNHELD)
def test_each_keyword_that_is_announced_as_not_held_compiles(name: str) -> None:
    value: Any = 1 if name.startswith(("min", "max")) else {}
    if name in ("uniqueItems", "unevaluatedItems", "unevaluatedProperties"):
        value = True
    schema = {"type": "object", "properties": {"a": {}}, name: value}
    CONSTRAINTS["bytes"].compile(Constraint(kind="json_schema", value=json.dumps(schema)))


def test_digits_and_letters_of_an_expression_are_those_of_ascii() -> None:
    state = CONSTRAINTS["bytes"].compile(Constraint(kind="regex", value=r"\d\w"))
    tokenizer = KINDS["bytes"][0]
    shown = {tokenizer.decode([int(token)]) for token in np.flatnonzero(state.mask())}
    assert shown == set("0123456789")
