from __future__ import annotations

from pathlib import Path

import pytest

from msx_archiver.errors import HostileArchiveError
from msx_archiver.guard import ArchiveLimits, ExtractionGuard
from msx_archiver.members import ArchiveMember, MemberKind


def guard(size: int = 1000, **limits: float) -> ExtractionGuard:
    return ExtractionGuard(Path("m.mar"), size, ArchiveLimits(**limits))  # type: ignore[arg-type]


def file(path: str, size: int = 1) -> ArchiveMember:
    return ArchiveMember(path, path, MemberKind.FILE, size)


def folder(path: str) -> ArchiveMember:
    return ArchiveMember(path, path, MemberKind.FOLDER)


def refused(check: ExtractionGuard, member: ArchiveMember) -> str:
    with pytest.raises(HostileArchiveError) as caught:
        check.admit(member)
    assert repr(member.name) in str(caught.value)
    assert str(caught.value).startswith("m.mar is refused: ")
    return str(caught.value)


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        (file("a"), file("a"), "twice"),
        (file("a"), ArchiveMember("./a", "a", MemberKind.FILE), "twice"),
        (file("a"), folder("a"), "twice"),
        (folder("a"), file("a"), "twice"),
        (file("a/b"), file("a"), "twice"),
        (file("a"), file("a/b"), "lies in 'a', which is a file"),
        (file("a"), file("a/b/c"), "lies in 'a', which is a file"),
        (ArchiveMember("l", "l", MemberKind.LINK, target="x"), file("l/b"), "lies in 'l', which is a link"),
    ],
)
def test_two_members_in_one_place(first: ArchiveMember, second: ArchiveMember, word: str) -> None:
    check = guard()
    check.admit(first)
    assert word in refused(check, second)


def test_a_folder_may_be_listed_twice() -> None:
    check = guard()
    for member in (folder("a"), file("a/b"), folder("a"), folder("a/c/d"), folder("a/c")):
        check.admit(member)


def test_special_files() -> None:
    assert "device file" in refused(guard(), ArchiveMember("null", "null", MemberKind.SPECIAL))


def test_too_many_members_count_the_folders_that_they_imply() -> None:
    check = guard(max_members=4)
    check.admit(file("a/b/c"))
    check.admit(file("d"))
    assert "limit of 4" in refused(check, file("e"))


def test_ratio_is_that_of_all_members_together() -> None:
    check = guard(size=10, max_ratio=5, ratio_floor=20)
    check.admit(file("a", 20))
    check.admit(file("b", 30))
    assert "5 times" in refused(check, file("c", 1))


def test_ratio_does_not_matter_below_the_floor() -> None:
    guard(size=1, max_ratio=2, ratio_floor=100).admit(file("a", 100))


def test_total_size() -> None:
    check = guard(max_size=10)
    check.admit(file("a", 10))
    assert "10 B" in refused(check, file("b", 1))


def test_negative_size() -> None:
    assert "negative" in refused(guard(), file("a", -1))


@pytest.mark.parametrize("target", ["missing", "dir", "other-link", ""])
def test_links_stand_for_regular_files_only(target: str) -> None:
    link = ArchiveMember("l", "l", MemberKind.LINK, target=target)
    listed = [file("a"), folder("dir"), ArchiveMember("other-link", "other-link", MemberKind.LINK, target="a"), link]
    check = guard()
    for member in listed:
        check.admit(member)
    with pytest.raises(HostileArchiveError, match="'l' links to"):
        check.finish(listed)
