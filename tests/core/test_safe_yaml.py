"""YAML from strangers: what is refused, in which words, and before it has cost anything."""

from __future__ import annotations

import tracemalloc
from datetime import date
from pathlib import Path

import pytest
import yaml

from msx_core.config import load_model_config
from msx_core.safe_yaml import MOST_BYTES, MOST_NODES, parse_yaml, read_yaml
from msx_core.values import ConfigError
from msx_core.workflow_spec import load_workflow_spec

KEYS = ", ".join(f"k{number}: 1" for number in range(9_000))


def refusal(text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text)
    assert len(str(caught.value)) < 300
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: 1\nb: " + "1" * 5_000, "is a number of more than 100 digits"),
        ("a: 1\nb: 0x" + "f" * 5_000, "is a number of more than 100 digits"),
        ("a: 1\nb: " + "1:" * 5_000 + "1", "is a number of more than 100 digits"),
        ("a: 1\nb: 2024-99-99", "'2024-99-99' cannot be read as timestamp"),
        ("a: 1\nb: 2024-01-01T00:00:00+99:99", "cannot be read as timestamp"),
        ("a: 1\nb: !!timestamp soon", "'soon' cannot be read as timestamp"),
        ("a: 1\nb: !!int many", "'many' cannot be read as int"),
        ("a: 1\nb: !!float many", "'many' cannot be read as float"),
        ("a: 1\nb: !!bool perhaps", "'perhaps' cannot be read as bool"),
    ],
)
def test_values_that_python_cannot_make(text: str, why: str) -> None:
    assert refusal(text).startswith("line 2: ")
    assert why in refusal(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"[{'1,' * MOST_NODES}]", "has more than 100000 keys and values"),
        ("{" + KEYS + ", " + KEYS + "}", "line 1: has more than 10000 keys in one mapping"),
        (
            f"a: &a {{{KEYS}}}\nb: {{<<: [{','.join(['*a'] * 1_000)}]}}",
            "line 2: has more than 10000 keys in one mapping",
        ),
        (
            f"a: &a {{{KEYS}}}\n" + "\n".join(f"b{number}: {{<<: *a}}" for number in range(50)),
            "line 13: with its merges (<<) the file holds more than 100000 keys",
        ),
        (f"a: &a [{'1,' * 50}]\nb: [{'*a,' * 3_000}]", "with its aliases expanded it holds more than 100000 values"),
        ("a: &a [*a]", "with its aliases expanded it holds more than 100000 values"),
        ("x" * (MOST_BYTES + 1), "has more than 1 MiB, which is the most that is read of a YAML file"),
    ],
)
def test_what_is_too_much(text: str, why: str) -> None:
    """Refused while it is counted: nothing is made of it."""
    tracemalloc.start()
    try:
        assert refusal(text) == why
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_the_size_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object) -> None:
        raise AssertionError("it is read")

    monkeypatch.setattr(yaml, "parse", parse)
    path = tmp_path / "model-config.yaml"
    path.write_bytes(b"a: 1\n" * (4 << 20))
    with pytest.raises(ConfigError, match=r"model-config\.yaml: has more than 1 MiB"):
        read_yaml(path)


def test_a_mapping_that_merges_itself() -> None:
    assert parse_yaml("a: &a {<<: *a, b: 1}") == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("merge", "expected"),
    [
        ("{<<: *a}", {"name": 1, "first": 1}),
        ("{<<: [*a, *b]}", {"name": 1, "first": 1, "second": 1}),
        ("{<<: [*b, *a]}", {"name": 2, "first": 1, "second": 1}),
        ("{name: 3, <<: [*a, *b]}", {"name": 3, "first": 1, "second": 1}),
        ("{<<: [], =: 4}", {"=": 4}),
    ],
)
def test_the_earlier_of_merged_mappings_wins(merge: str, expected: dict[str, int]) -> None:
    assert parse_yaml(f"a: &a {{name: 1, first: 1}}\nb: &b {{name: 2, second: 1}}\nc: {merge}")["c"] == expected


@pytest.mark.parametrize("merge", ["1", "[1]", "text", "[[]]"])
def test_only_mappings_are_merged(merge: str) -> None:
    with pytest.raises(ConfigError, match=r"^line 1: a merge \(<<\) takes a mapping or a list of mappings$"):
        parse_yaml(f"{{<<: {merge}}}")


def test_merges_in_a_row() -> None:
    lines = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: *a{n - 1}, y{n}: 1}}" for n in range(1, 50))]
    assert len(parse_yaml("\n".join(lines))["a49"]) == 50


def test_what_is_read_is_the_same_as_ever() -> None:
    assert parse_yaml("{a: 0x10, b: 1_000, c: 1:30, d: [1.5, .inf], e: 2024-02-03, f: no, g: null, 7: x}") == {
        "a": 16,
        "b": 1000,
        "c": 90,
        "d": [1.5, float("inf")],
        "e": date(2024, 2, 3),
        "f": False,
        "g": None,
        7: "x",
    }


def test_each_kind_of_file_is_read_so(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text("a: " + "1" * 5_000)
    for load in (load_model_config, load_workflow_spec):
        with pytest.raises(ConfigError, match=r"file\.yaml: line 1: 1+\.\.\.1+ is a number of more than 100 digits"):
            load(path)
