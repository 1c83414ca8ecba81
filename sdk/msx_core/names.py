"""Valid names of models, their versions and workflows: they become parts of URLs, paths and labels."""

import re

MOST_CHARACTERS = 200
"""The most characters of a name or version, so that it fits a file name with a suffix."""

MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-.]*")
"""TorchServe's rule."""
MODEL_VERSION = re.compile(r"(?!all\Z)[A-Za-z0-9][A-Za-z0-9_.+\-]*")
"""Versions become a part of a path, in which `all` means every version."""
INTERPRETER_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}$"
"""Names of interpreters: the keys `pythons` of a server and `python` of a model."""


def name_problem(name: str) -> str:
    """The end of a sentence about an invalid name of a model or workflow; "" for a valid one."""
    rule = "must begin with a letter or digit and hold only letters, digits, '_', '-' and '.'"
    return _too_long(name) or ("" if MODEL_NAME.fullmatch(name) else rule)


def version_problem(version: str) -> str:
    """The same for a version."""
    rule = (
        "must begin with a letter or digit, hold only letters, digits, '_', '-', '+' and '.', and not be 'all', which "
        "means every version"
    )
    return _too_long(version) or ("" if MODEL_VERSION.fullmatch(version) else rule)


def short_name(name: str) -> str:
    """The name, shortened for messages."""
    return repr(name if len(name) <= 60 else f"{name[:57]}…")


def _too_long(name: str) -> str:
    return f"has {len(name)} characters, and {MOST_CHARACTERS} are the most" if len(name) > MOST_CHARACTERS else ""
