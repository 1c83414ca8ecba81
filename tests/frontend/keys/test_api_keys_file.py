"""The operator's file: who may touch it, what it says, and that no message shows a key."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from msx_core.priorities import HIGH, NORMAL
from msx_frontend.keys.api_keys_file import MOST_KEYS, KeysFileError, parse, read_content
from msx_frontend.keys.key import Key, digest_of

VALUE = "a-secret-value-of-thirty-two-chr"
ENTRY = {"name": "team-a", "key": VALUE, "kind": "inference"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "keys.yaml"
    path.write_text("keys: []")
    path.chmod(0o600)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(KeysFileError) as info:
        parse(path, read_content(path).data)
    return str(info.value)


def parsed(**changes: Any) -> Key:
    keys, _ = parse(Path("k"), json.dumps({"keys": [{**ENTRY, **changes}]}).encode())
    return keys[0]


# -- who may touch it --


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o660])
def test_a_file_that_others_may_write_is_refused(path: Path, mode: int) -> None:
    path.chmod(mode)
    assert refusal(path) == (
        f"api_keys_file: users other than its owner may write {path} (its mode is {mode:04o}), and so open the server: "
        f"chmod go-w {path}"
    )


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o400, False), (0o640, False), (0o644, True)])
def test_a_file_that_others_may_read_is_a_warning(path: Path, mode: int, warned: bool) -> None:
    path.chmod(mode)
    warning = read_content(path).warning
    assert warning == (
        f"api_keys_file: every user of this machine may read {path} (its mode is {mode:04o}): chmod o-r {path}"
        if warned
        else ""
    )


def test_nor_is_it_on_a_read_only_mount(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o644)
    real = os.fstatvfs

    def read_only(fd: int) -> Any:
        found = real(fd)
        return type("Found", (), {"f_flag": found.f_flag | os.ST_RDONLY})

    monkeypatch.setattr(os, "fstatvfs", read_only)
    assert read_content(path).warning == ""


def test_what_is_not_a_file(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"api_keys_file: {tmp_path} is not a file: name the file that holds the keys"
    assert refusal(tmp_path / "gone") == f"api_keys_file: {tmp_path}/gone cannot be read: No such file or directory"
    subprocess.run(["mkfifo", "-m", "600", str(tmp_path / "pipe")], check=True)
    assert "pipe is not a file" in refusal(tmp_path / "pipe")


def test_a_file_without_end(path: Path) -> None:
    os.truncate(path, 5 << 20)
    assert refusal(path) == f"api_keys_file: {path} has more than 1 MiB"


# -- what it says --


def test_yaml_and_json_say_the_same(path: Path) -> None:
    path.write_text(
        f"""
keys:
- name: team-a
  key: {VALUE}
  kind: [inference]
  expires: 2030-01-01T00:00:00Z
  models: [a, b]
  rate: 2
"""
    )
    entry = {**ENTRY, "expires": "2030-01-01T01:00:00+01:00", "models": ["b", "a"], "rate": 2.0}
    keys, short = parse(path, read_content(path).data)
    others, _ = parse(path, json.dumps({"keys": [entry]}).encode())
    assert (len(keys), short) == (1, [])
    assert keys[0].same_as(others[0])
    assert keys[0].digest == digest_of(VALUE)
    assert keys[0].until == 1893456000


@pytest.mark.parametrize(
    ("expires", "until"),
    [
        (None, math.inf),
        ("2030-01-01", 1893456000),
        ("2030-01-01T00:00:00", 1893456000),
        ("2030-01-01 00:00:00Z", 1893456000),
    ],
)
def test_moments(path: Path, expires: str | None, until: float) -> None:
    assert parsed(expires=expires).until == until
    if expires:
        path.write_text(f"keys: [{{name: n, key: {VALUE}, kind: API, expires: {expires}}}]")
        assert parse(path, read_content(path).data)[0][0].until == until


def test_kinds() -> None:
    assert parsed(kind="API").kinds == {"API"}
    assert parsed(kind=["inference", "management"]).kinds == {"inference", "management"}


def test_a_key_may_name_a_thousand_models() -> None:
    names = [f"m{number}" for number in range(1000)]
    assert parsed(models=names).models == frozenset(names)


def test_a_short_key_is_told_by_name() -> None:
    assert parse(Path("k"), json.dumps({"keys": [{**ENTRY, "key": "short"}]}).encode())[1] == ["team-a"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "a b"}, "entry 1: name: 'a b' is not a name of up to 64 letters, digits and ._@:/+-, which begins"),
        ({"name": None}, "entry 1: name: None is not a name"),
        ({"name": "a\n"}, "entry 1: name: 'a\\n' is not a name"),
        ({"key": None}, "entry 1 (team-a): key: is missing"),
        ({"key": 12345678}, "entry 1 (team-a): key: is not a text: put it in quotes"),
        ({"key": "s e c r e t"}, "entry 1 (team-a): key: is not a text of 1 to 512 printable ASCII characters without"),
        ({"key": "s" * 513}, "entry 1 (team-a): key: is not a text of 1 to 512"),
        ({"kind": "admin"}, "entry 1 (team-a): kind: 'admin' is not inference, management, API, or a list of them"),
        ({"kind": []}, "entry 1 (team-a): kind: [] is not inference"),
        ({"kind": ["API", "API"]}, "entry 1 (team-a): kind: ['API', 'API'] is not inference"),
        ({"expires": "soon"}, "entry 1 (team-a): expires: 'soon' is not a time like 2027-01-31T12:00:00Z"),
        ({"expires": 5}, "entry 1 (team-a): expires: 5 is not a time"),
        ({"models": "a"}, "entry 1 (team-a): models: 'a' is not a list of models"),
        ({"models": []}, "entry 1 (team-a): models: [] is not a list of models"),
        ({"models": ["m"] * 1001}, "entry 1 (team-a): models: ['m', 'm'"),
        (
            {"models": ["a"], "kind": ["inference", "management"]},
            "entry 1 (team-a): models: only a key whose kind is inference alone can be limited to models",
        ),
        ({"rate": 0}, "entry 1 (team-a): rate: 0 is not a number of requests per second, from 0.001 to 1000000"),
        ({"Kind": "API"}, "entry 1 (team-a): Kind: is not a member; did you mean kind?"),
    ],
)
def test_a_wrong_entry_is_named(path: Path, changes: dict[str, Any], said: str) -> None:
    path.write_text(json.dumps({"keys": [{**ENTRY, **changes}]}))
    refused = refusal(path)
    assert refused.startswith(f"api_keys_file: {path}: {said}")
    assert VALUE not in refused
    assert "s e c r e t" not in refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a mapping with the one member keys, a list"),
        ("[]", "is not a mapping with the one member keys, a list"),
        ("keys: 1", "is not a mapping with the one member keys, a list"),
        ("keys: [1]", "entry 1 is not a mapping with name, key, kind, expires, models, apps, priority, rate"),
        ("keys:\n- {name: a, key: *secret, kind: API}", "line 2, column 18: is not YAML or JSON"),
        ("keys:\n- {name: a, key: !secret x, kind: API}", "line 2, column 18: is not YAML or JSON"),
        ("keys:\n- {name: a, key: 2027-13-45, kind: API}", "line 2: is not YAML or JSON"),
        ("keys:\n- {name: a, key: 's\n", "is not YAML or JSON"),
    ],
)
def test_a_file_of_something_else(path: Path, text: str, said: str) -> None:
    path.write_text(text)
    refused = refusal(path)
    assert said in refused
    assert "secret" not in refused
    assert "2027" not in refused


def test_each_name_and_each_key_once(path: Path) -> None:
    path.write_text(json.dumps({"keys": [ENTRY, {**ENTRY, "key": "x" * 20}]}))
    assert refusal(path) == f"api_keys_file: {path}: entry 2 has the name of entry 1, team-a"
    path.write_text(json.dumps({"keys": [ENTRY, {**ENTRY, "name": "b"}]}))
    assert refusal(path) == f"api_keys_file: {path}: team-a and b have the same key"


def test_too_many(path: Path) -> None:
    path.write_text(json.dumps({"keys": [{}] * (MOST_KEYS + 1)}))
    assert refusal(path) == f"api_keys_file: {path}: has 1001 keys; at most 1000 are allowed"


def test_the_class_that_a_key_grants(path: Path) -> None:
    """A request that names no class is a normal one, so that a key cannot have less."""
    entry = "keys:\n- {name: a, key: 0123456789abcdef, kind: inference, priority: %s}\n"
    for granted, priority in (("high", HIGH), ("normal", NORMAL)):
        keys, _ = parse(path, (entry % granted).encode())
        assert keys[0].priority == priority
    for wrong in ("low", "urgent", "1", "[high]"):
        with pytest.raises(KeysFileError, match=r"entry 1 \(a\): priority: .* is not high or normal"):
            parse(path, (entry % wrong).encode())
