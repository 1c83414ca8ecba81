"""`python -I -S confine.py [--user U --group G --groups …] [--limit NAME=N]… [--cores C,…] [--no-new-privileges] -- …`

Gives up what a worker must not have, then becomes the command: same process, same sockets. It runs before anything of
a model is on Python's path, and imports nothing but the standard library: an archive's `sitecustomize.py` would be
imported earlier than the worker's first line.
"""

import argparse
import ctypes
import os
import resource
import sys

PR_SET_NO_NEW_PRIVS = 38


def main(arguments: list[str]) -> None:
    """Ends the process with a sentence on stderr where the system refuses."""
    options = _parser().parse_args(arguments)
    for limit in options.limit:
        _limit(*limit.split("="))
    if options.cores:
        _bind([int(core) for core in options.cores.split(",")])
    if options.user is not None:
        _become(options.user, options.group, [int(group) for group in options.groups.split(",") if group])
    if options.no_new_privileges:
        _no_new_privileges()
    try:
        os.execv(options.command[0], options.command)  # noqa: S606 - a list of arguments is all that it takes
    except OSError as error:
        sys.exit(f"{options.command[0]} cannot be run as user {os.getuid()}: {error.strerror}")


def _limit(name: str, number: str) -> None:
    """Soft and hard: what is given up cannot be had back."""
    try:
        resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (int(number), int(number)))
    except (OSError, ValueError) as error:
        sys.exit(f"worker_limits: {name}={number} cannot be set: {error}")


def _bind(cores: list[int]) -> None:
    """Speed alone depends on it: where the system refuses, the worker runs unbound and says so."""
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        sys.stderr.write(f"bindCores: cores {cores} cannot be used: {error.strerror}\n")


def _become(user: int, group: int, groups: list[int]) -> None:
    """Groups first, while it may; setresuid(2) then takes all capabilities away."""
    try:
        os.setgroups(groups)
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    except OSError as error:
        sys.exit(f"worker_user: the process cannot become user {user}: {error.strerror}")
    os.umask(0o077)


def _no_new_privileges() -> None:
    """prctl(2): neither set-user-id programs nor file capabilities count from here on, for children either."""
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        return
    sys.exit(f"worker_no_new_privileges: the system has no such thing: {os.strerror(ctypes.get_errno())}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--user", type=int)
    parser.add_argument("--group", type=int)
    parser.add_argument("--groups", default="")
    parser.add_argument("--limit", action="append", default=[])
    parser.add_argument("--cores", default="")
    parser.add_argument("--no-new-privileges", action="store_true")
    parser.add_argument("command", nargs="+")
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
