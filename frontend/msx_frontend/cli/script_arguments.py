"""Which arguments of msx-serve are a start script's. Every command imports it: nothing that is slow."""

from __future__ import annotations

from collections.abc import Sequence


def divided(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments of msx-serve up to the file of `--script`, and those of the script, as Python divides its own."""
    for at, argument in enumerate(arguments):
        if argument == "--script":
            return list(arguments[: at + 2]), list(arguments[at + 2 :])
        if argument.startswith("--script="):
            return list(arguments[: at + 1]), list(arguments[at + 1 :])
    return list(arguments), []
