"""The text of a JSON file as editors write it: in UTF-8, UTF-16 or UTF-32, with a byte order mark or without."""

import json

from msx_core.file_kinds import HEAD, foreign_kind


def json_text(data: bytes) -> str:
    """Raises ValueError, also for a pointer of Git LFS or a page that came in the file's place."""
    if kind := foreign_kind(data[:HEAD]):
        raise ValueError(f"it is {kind.name}: {kind.remedy}")
    return data.decode(json.detect_encoding(data))
