"""The part of an error message for clients: one line, without folders of this machine."""

import re

from msx_core.failures import shortened

MOST = 500
"""Characters. The log and the management API have the whole text."""

_QUOTED = re.compile(r"""(?P<quote>['"])/(?:[^'"\n]*/)?(?P<name>[^'"/\n]*)(?P=quote)""")
"""A path between quotes may contain spaces."""
_BARE = re.compile(r"""(?<![\w/:.~-])~?/(?:[^\s/'"]+/)*(?=[^\s/'"])""")
"""The folders of a path, but not of a URL."""


def public_text(text: str) -> str:
    """`text` on one line, with only the last part of each path."""
    line = " ".join(text.split())
    return shortened(_BARE.sub("", _QUOTED.sub(r"\g<quote>\g<name>\g<quote>", line)), MOST)
