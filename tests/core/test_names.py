"""Names of models and versions."""

from __future__ import annotations

import pytest

from msx_core.manifest import Manifest, ManifestError
from msx_core.names import aliases_problem, name_problem, short_name, version_problem


@pytest.mark.parametrize("name", ["m", "a.b-c_d", "9", "m" * 200])
def test_names(name: str) -> None:
    assert name_problem(name) == ""
    assert version_problem(name) == ""


@pytest.mark.parametrize("name", ["", "-m", "a b", "a/b", "m\n", "m" * 201])
def test_what_is_not_a_name(name: str) -> None:
    assert name_problem(name)
    assert version_problem(name)


def test_versions_have_a_plus_but_never_mean_all() -> None:
    assert version_problem("1.0+cu") == ""
    assert "every version" in version_problem("all")
    assert name_problem("a+b")


@pytest.mark.parametrize("alias", ["gpt-4", "org/name", "a/b/c.d", "9", "m" * 200])
def test_aliases(alias: str) -> None:
    assert aliases_problem([alias, "other"]) == ""


@pytest.mark.parametrize(
    "alias", ["", "/a", "a/", "a//b", "a/../b", "a/.b", "a:b", "a b", "a\n", "ä", "m" * 201, "a?b", "a%2Fb"]
)
def test_what_is_not_an_alias(alias: str) -> None:
    assert short_name(alias) in aliases_problem(["other", alias])


def test_lists_of_aliases() -> None:
    assert aliases_problem([]) == aliases_problem([f"a{number}" for number in range(32)]) == ""
    assert aliases_problem([f"a{number}" for number in range(33)]) == "has 33 names, and 32 are the most"
    assert aliases_problem(["a", "b", "a"]) == "has 'a' twice"


def test_a_manifest_is_held_to_it() -> None:
    with pytest.raises(ManifestError, match="length <= 200"):
        Manifest.from_json(b'{"model": {"modelName": "' + b"m" * 201 + b'"}}')


def test_a_long_name_is_shown_in_brief() -> None:
    assert short_name("m") == "'m'"
    assert len(short_name("m" * 1000)) == 60
