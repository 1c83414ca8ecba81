"""What models, their versions and workflows may be called: names become parts of URLs, of paths and of labels."""

from __future__ import annotations

import re

MOST_CHARACTERS = 200
"""Of a name or a version: with a suffix it is still a name of a file, and with another one a line of a log."""

MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-.]*")
"""TorchServe's rule."""
MODEL_VERSION = re.compile(r"(?!all\Z)[A-Za-z0-9][A-Za-z0-9_.+\-]*")
"""What can stand in a path, where `all` means every version."""


def name_problem(name: str) -> str:
    """What is wrong with the name of a model or workflow, after its name in a sentence; "" for nothing."""
    rule = "must begin with a letter or digit and hold only letters, digits, '_', '-' and '.'"
    return _too_long(name) or ("" if MODEL_NAME.fullmatch(name) else rule)


def version_problem(version: str) -> str:
    """The same of a version."""
    rule = (
        "must begin with a letter or digit, hold only letters, digits, '_', '-', '+' and '.', and not be 'all', which "
        "means every version"
    )
    return _too_long(version) or ("" if MODEL_VERSION.fullmatch(version) else rule)


def short_name(name: str) -> str:
    """For messages."""
    return repr(name if len(name) <= 60 else f"{name[:57]}…")


def _too_long(name: str) -> str:
    return f"has {len(name)} characters, and {MOST_CHARACTERS} are the most" if len(name) > MOST_CHARACTERS else ""
