from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_archiver.members import ArchiveMember, MemberKind, link_target, normalise, path_problem, strip_single_root

PARTS = st.sampled_from(["..", ".", "", "a", "C:", "\\", "\0", "\n", "é", "\udc80", "..a", "a..", "x" * 300, "MAR-INF"])
NAMES = st.lists(PARTS | st.text(max_size=8), max_size=6).map("/".join)


@given(NAMES)
def test_an_accepted_name_stays_inside(name: str) -> None:
    if path_problem(name) is not None:
        return
    path = normalise(name)
    root = Path("/srv/model")
    inside = Path(os.path.normpath(root / path))
    assert inside != root
    assert inside.is_relative_to(root)
    assert inside == root / path
    assert path.isprintable() or path.encode()
    assert normalise(path) == path


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../x", "leaves"),
        ("a/../../x", "leaves"),
        ("a/..", "leaves"),
        ("/etc/passwd", "absolute"),
        ("//x", "absolute"),
        ("C:/x", "drive letter"),
        ("c:x", "drive letter"),
        ("..\\x", "backslash"),
        ("a\0b", "control character"),
        ("a\x1b[2J", "control character"),
        ("", "no name"),
        ("./", "no name"),
        ("a\udcff", "not UTF-8"),
        ("a/" * 600 + "b", "path longer"),
        ("é" * 128, "name longer"),
    ],
)
def test_refused_names(name: str, problem: str) -> None:
    assert problem in (path_problem(name) or "")


@pytest.mark.parametrize("name", ["a", "a/b", "./a//b/", "..a", "a..", "a b", "é/ü", "ab:c", ".hidden"])
def test_accepted_names(name: str) -> None:
    assert path_problem(name) is None


@pytest.mark.parametrize(
    ("path", "linked", "relative", "target"),
    [
        ("a/l", "b", True, "a/b"),
        ("a/l", "../b", True, "b"),
        ("a/l", "../../b", True, None),
        ("a/l", "/b", True, None),
        ("a/l", "..\\b", True, None),
        ("a/l", "b", False, "b"),
        ("a/l", "../b", False, None),
        ("l", "..", True, None),
    ],
)
def test_link_target(path: str, linked: str, relative: bool, target: str | None) -> None:
    assert link_target(path, linked, relative=relative) == target


def members(*paths: str) -> list[ArchiveMember]:
    return [ArchiveMember(path, path, MemberKind.FILE) for path in paths]


def paths_of(found: list[ArchiveMember]) -> list[str]:
    return [member.path for member in found]


def test_one_shared_folder_is_stripped() -> None:
    assert paths_of(strip_single_root(members("m/a", "m/b/c"), "MARK")) == ["a", "b/c"]


@pytest.mark.parametrize("paths", [["m/a", "n/b"], ["a"], ["MARK/x", "MARK"], ["m/a", "m"]])
def test_other_roots_are_kept(paths: list[str]) -> None:
    assert paths_of(strip_single_root(members(*paths), "MARK")) == paths


def test_marker_at_the_root_keeps_it() -> None:
    assert paths_of(strip_single_root(members("MAR-INF/M"), "MAR-INF/M")) == ["MAR-INF/M"]


def test_targets_of_links_are_stripped_too() -> None:
    link = ArchiveMember("m/l", "m/l", MemberKind.LINK, target="m/a")
    assert strip_single_root([*members("m/a"), link], "MARK")[1].target == "a"
