"""Regular expressions as JSON schemas read them."""

from __future__ import annotations

import re

CLASSES = {"d": "0-9", "w": "A-Za-z0-9_"}
_ESCAPE_OR_BRACKET = re.compile(r"\\(.)|([\[\]])", re.DOTALL)


def with_ascii_classes(pattern: str) -> str:
    r"""The same expression with `\d` and `\w` restricted to ASCII, as in `pattern` of a schema: llguidance's own
    include Unicode."""
    depth = 0

    def written(match: re.Match[str]) -> str:
        nonlocal depth
        escaped, bracket = match.groups()
        if bracket:
            depth += 1 if bracket == "[" else -1 if depth else 0
        letters = CLASSES.get(escaped.lower()) if escaped else None
        if letters is None:
            return match[0]
        if escaped.isupper():
            return f"[^{letters}]"
        return letters if depth else f"[{letters}]"

    return _ESCAPE_OR_BRACKET.sub(written, pattern)
