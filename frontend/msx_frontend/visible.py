"""Text of others for terminals and text files, in which it must not move the cursor or change the title."""

import re

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""C0 and C1 but for tab and line feed: a terminal takes U+009B for the beginning of an escape sequence, too."""


def visible(text: str) -> str:
    """`text` with control characters as Python writes them: `\\x1b[31m`."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)
