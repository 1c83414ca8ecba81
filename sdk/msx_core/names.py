"""Valid names of models, their versions and workflows: they become parts of URLs, paths and labels."""

import re
from collections.abc import Sequence

MOST_CHARACTERS = 200
"""The most characters of a name or version, so that it fits a file name with a suffix."""

MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-.]*")
"""TorchServe's rule."""
MODEL_VERSION = re.compile(r"(?!all\Z)[A-Za-z0-9][A-Za-z0-9_.+\-]*")
"""Versions become a part of a path, in which `all` means every version."""
INTERPRETER_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}$"
"""Names of interpreters: the keys `pythons` of a server and `python` of a model."""
ALIAS = re.compile(rf"{MODEL_NAME.pattern}(/{MODEL_NAME.pattern})*")
"""Names of a model, with slashes between them, as hubs have them."""
MOST_ALIASES = 32


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


def aliases_problem(aliases: Sequence[str]) -> str:
    """The end of a sentence about a model's list of aliases; "" for a valid one."""
    if len(aliases) > MOST_ALIASES:
        return f"has {len(aliases)} names, and {MOST_ALIASES} are the most"
    rule = "must begin with a letter or digit, also behind a '/', and hold only letters, digits, '_', '-', '.' and '/'"
    for place, alias in enumerate(aliases):
        if problem := _too_long(alias) or ("" if ALIAS.fullmatch(alias) else rule):
            return f"has {short_name(alias)}, which {problem}"
        if alias in aliases[:place]:
            return f"has {short_name(alias)} twice"
    return ""


def short_name(name: str) -> str:
    """The name, shortened for messages."""
    return repr(name if len(name) <= 60 else f"{name[:57]}…")


def _too_long(name: str) -> str:
    return f"has {len(name)} characters, and {MOST_CHARACTERS} are the most" if len(name) > MOST_CHARACTERS else ""
