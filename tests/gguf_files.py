"""GGUF files, written by the format's own description: also such as no program writes."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

MAGIC = b"GGUF"
_FORMS = {bool: (7, "<?"), int: (4, "<I"), float: (6, "<f")}
TEXT, ARRAY = 8, 9


class Stored(NamedTuple):
    """`shape` is NumPy's, `kind` a number; `offset`: where it says to be, if not behind the one before."""

    shape: tuple[int, ...]
    kind: int
    data: bytes
    offset: int | None = None


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def plain(value: Any) -> tuple[int, bytes]:
    if isinstance(value, str):
        return TEXT, text(value)
    kind, form = _FORMS[type(value)]
    return kind, struct.pack(form, value)


def written(value: Any) -> bytes:
    """A value with its type before it."""
    if not isinstance(value, list):
        kind, data = plain(value)
        return struct.pack("<I", kind) + data
    kinds = [plain(one) for one in value]
    inner = kinds[0][0] if kinds else TEXT
    return struct.pack("<IIQ", ARRAY, inner, len(value)) + b"".join(data for _, data in kinds)


def gguf(
    metadata: Mapping[str, Any],
    tensors: Mapping[str, Stored],
    *,
    version: int = 3,
    counts: tuple[int, int] | None = None,
    alignment: int = 32,
) -> bytes:
    """`counts`: of tensors and keys, where these are not those that follow."""
    keys = b"".join(text(key) + written(value) for key, value in metadata.items())
    infos, body = b"", b""
    for name, one in tensors.items():
        body += bytes(-len(body) % alignment)
        place = len(body) if one.offset is None else one.offset
        axes = struct.pack(f"<I{len(one.shape)}Q", len(one.shape), *one.shape[::-1])
        infos += text(name) + axes + struct.pack("<IQ", one.kind, place)
        body += one.data
    head = MAGIC + struct.pack("<IQQ", version, *(counts or (len(tensors), len(metadata)))) + keys + infos
    return head + bytes(-len(head) % alignment) + body


def write(path: Path, *args: Any, **options: Any) -> Path:
    path.write_bytes(gguf(*args, **options))
    return path
