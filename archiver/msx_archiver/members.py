"""The members of an archive as it lists them, before they are trusted."""

import posixpath
import re
from dataclasses import dataclass, replace
from enum import Enum

MAX_PATH_BYTES = 1024
MAX_NAME_BYTES = 255


class MemberKind(Enum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    SPECIAL = "special file"


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """One entry. `name` is as written, `path` the normalised one in the model; `size` is in bytes, unpacked."""

    name: str
    path: str
    kind: MemberKind
    size: int = 0
    executable: bool = False
    target: str = ""
    """The path of the file that a link stands for."""


def normalise(name: str) -> str:
    """`./a//b/` becomes `a/b`. Only for names that `path_problem` accepts."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def path_problem(name: str) -> str | None:
    """Why a member of this name must not be unpacked, as the end of a sentence; None if it may be."""
    parts = name.split("/")
    problems = {
        "has an absolute path": name.startswith("/"),
        "has a drive letter": re.match(r"[A-Za-z]:", name) is not None,
        "has a backslash in its name": "\\" in name,
        "has a control character in its name": any(ord(char) < 32 or ord(char) == 127 for char in name),
        "leaves the model's folder by '..'": ".." in parts,
        "has no name": not normalise(name),
        "has a name that is not UTF-8": any("\ud800" <= char <= "\udfff" for char in name),
        f"has a path longer than {MAX_PATH_BYTES} bytes": _length(name) > MAX_PATH_BYTES,
        f"has a name longer than {MAX_NAME_BYTES} bytes": max(map(_length, parts)) > MAX_NAME_BYTES,
    }
    return next((problem for problem, found in problems.items() if found), None)


def link_target(path: str, linked: str, *, relative: bool) -> str | None:
    """The path in the model to which a link at `path` leads; None if it leads out of the model."""
    if "\\" in linked or "\0" in linked or linked.startswith("/"):
        return None
    base = posixpath.dirname(path) if relative else ""
    target = posixpath.normpath(posixpath.join(base, linked))
    return None if target == ".." or target.startswith("../") else target


def strip_single_root(members: list[ArchiveMember], marker: str) -> list[ArchiveMember]:
    """Drops the first path component if all members share one, unless `marker` is at the root already.

    torch-model-archiver's tgz has all files below the model's name, and so have SageMaker's folders.
    """
    roots = {member.path.partition("/")[0] for member in members}
    files = [member for member in members if member.kind is not MemberKind.FOLDER]
    nested = all("/" in member.path for member in files)
    if len(roots) != 1 or not nested or any(member.path == marker for member in members):
        return members
    return [_stripped(member) for member in members if "/" in member.path]


def _stripped(member: ArchiveMember) -> ArchiveMember:
    path, target = (text.partition("/")[2] for text in (member.path, member.target))
    return replace(member, path=path, target=target)


def _length(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))
