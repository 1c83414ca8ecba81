"""What clients may read of an error of the server: one line, without the folders of this machine."""

from __future__ import annotations

import re

from msx_sdk._internal.failures import shortened

MOST = 500
"""Characters: all of it stands in the log and on the management API."""

_QUOTED = re.compile(r"""(?P<quote>['"])/(?:[^'"\n]*/)?(?P<name>[^'"/\n]*)(?P=quote)""")
"""Between quotes a path may have spaces."""
_BARE = re.compile(r"""(?<![\w/:.~-])~?/(?:[^\s/'"]+/)*(?=[^\s/'"])""")
"""The folders before a name, but not the ones of a URL."""


def public_text(text: str) -> str:
    """`text` on one line; of a path only its last part."""
    line = " ".join(text.split())
    return shortened(_BARE.sub("", _QUOTED.sub(r"\g<quote>\g<name>\g<quote>", line)), MOST)
