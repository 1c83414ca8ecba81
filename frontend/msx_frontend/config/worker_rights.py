"""The users and resource limits of workers, parsed from the server's keys."""

import grp
import os
import pwd
import re
from collections.abc import Sequence
from dataclasses import dataclass

from msx_frontend.config.server_config import ServerConfig, ServerConfigError

LIMITS = ("as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack")
MOST = (1 << 32) - 2
"""The largest number of a user; the next one means "no user" to the kernel."""


@dataclass(frozen=True)
class User:
    """`groups`: the supplementary groups."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Users:
    """One user, or a range of user numbers, of which each archive gets its own."""

    uids: range
    gid: int | None = None
    """The group; None: the number of the user."""
    groups: tuple[int, ...] = ()

    @property
    def is_range(self) -> bool:
        return len(self.uids) > 1

    def user(self, uid: int) -> User:
        return User(uid, uid if self.gid is None else self.gid, self.groups)


def worker_users(config: ServerConfig) -> Users | None:
    """Raises ServerConfigError for an unknown user or group, for root, and when the server does not run as root."""
    text = config.worker_user
    if text is None:
        if config.worker_groups:
            raise ServerConfigError("worker_groups: has no effect without worker_user, whose workers get these groups")
        return None
    users = _range(text) if re.fullmatch(r"\d+-\d+", text) else _single(text)
    if 0 in users.uids:
        raise ServerConfigError(f"worker_user: {text!r} is root, who can read everything: name another user")
    if os.geteuid() != 0:
        raise ServerConfigError(
            f"worker_user: only root can start workers as another user, and this server runs as user {os.geteuid()}: "
            "start it as root, or leave the key out"
        )
    return Users(users.uids, users.gid, tuple(sorted({*users.groups, *map(_group, config.worker_groups)})))


def worker_limits(parts: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Parse `nofile=1024`, …. Raises ServerConfigError."""
    return tuple(dict(map(_limit, parts)).items())


def _range(text: str) -> Users:
    first, last = map(int, text.split("-"))
    if not first <= last <= MOST:
        raise ServerConfigError(f"worker_user: {text!r} is not a range: the first number must not be above the last")
    return Users(range(first, last + 1))


def _single(text: str) -> Users:
    try:
        if not text.isdecimal():
            found = pwd.getpwnam(text)
        elif int(text) > MOST:
            raise ServerConfigError(f"worker_user: {text} is not the number of a user: the largest is {MOST}")
        else:
            found = pwd.getpwuid(int(text))
    except KeyError:
        if text.isdecimal():  # need not be known to the machine
            return Users(range(int(text), int(text) + 1))
        expected = "a user of this machine, a number, or a range like 60001-60050"
        raise ServerConfigError(f"worker_user: {text!r} is not {expected}") from None
    groups = tuple(group for group in os.getgrouplist(found.pw_name, found.pw_gid) if group != found.pw_gid)
    return Users(range(found.pw_uid, found.pw_uid + 1), found.pw_gid, groups)


def _group(text: str) -> int:
    if text.isdecimal() and int(text) <= MOST:
        return int(text)
    try:
        return grp.getgrnam(text).gr_gid
    except KeyError:
        raise ServerConfigError(f"worker_groups: {text!r} is not a group of this machine or a number") from None


def _limit(part: str) -> tuple[str, int]:
    name, _, number = (text.strip() for text in part.partition("="))
    if name not in LIMITS or not number.isdecimal() or int(number) >= 1 << 63:
        raise ServerConfigError(
            f"worker_limits: {part!r} is not a limit: write NAME=NUMBER, with a name of {', '.join(LIMITS)}, as "
            "setrlimit(2) has them"
        )
    return name, int(number)
