"""Image files of any depth, written byte by byte: Pillow writes few of them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Tag = tuple[int, int, Sequence[float]]
"""Number, type (3: SHORT, 4: LONG, 11: FLOAT, 12: DOUBLE) and values."""

SHORT, LONG, FLOAT, DOUBLE = 3, 4, 11, 12
_LETTERS = {SHORT: "H", LONG: "I", FLOAT: "f", DOUBLE: "d"}


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(samples: Array, sbit: Sequence[int] = ()) -> bytes:
    """16 bits a channel: grey [h, w], grey and alpha [h, w, 2], RGB [h, w, 3] or RGBA [h, w, 4]."""
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels(samples)]
    head = struct.pack(">IIBBBBB", samples.shape[1], samples.shape[0], 16, colour, 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in samples)
    told = chunk(b"sBIT", bytes(sbit)) if sbit else b""
    pixels = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + told + pixels + chunk(b"IEND", b"")


def tiff(
    samples: Array,
    order: str = "<",
    *,
    bits: int = 0,
    photometric: int = 0,
    planes: bool = False,
    tags: Sequence[Tag] = (),
) -> bytes:
    """`photometric` 0: what fits the number of channels, 10: WhiteIsZero. `bits`: 12 packs the samples."""
    count, bits = channels(samples), bits or samples.dtype.itemsize * 8
    form = {"u": 1, "i": 2, "f": 3}[samples.dtype.kind]
    data = _packed(samples) if bits == 12 else _bytes(samples, order, planes)
    parts = count if planes else 1
    size, place = len(data) // parts, 8
    shown = photometric % 10 if photometric else 2 if count > 2 else 1
    entries: list[Tag] = [
        (256, LONG, [samples.shape[1]]), (257, LONG, [samples.shape[0]]), (258, SHORT, [bits] * count),
        (259, SHORT, [1]), (262, SHORT, [shown]), (273, LONG, [place + part * size for part in range(parts)]),
        (277, SHORT, [count]), (278, LONG, [samples.shape[0]]), (279, LONG, [size] * parts),
        (284, SHORT, [2 if planes else 1]), (339, SHORT, [form] * count), *tags,
    ]  # fmt: skip
    return _tiff_file(order, data + b"\0" * (len(data) % 2), sorted(entries))


def _tiff_file(order: str, data: bytes, entries: list[Tag]) -> bytes:
    start = 8 + len(data)
    directory, further, after = b"", b"", start + 2 + 12 * len(entries) + 4
    for number, kind, values in entries:
        value = struct.pack(f"{order}{len(values)}{_LETTERS[kind]}", *values)
        if len(value) > 4:
            value, further = struct.pack(order + "I", after + len(further)), further + value
        directory += struct.pack(order + "HHI", number, kind, len(values)) + value.ljust(4, b"\0")
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", start)
    return head + data + struct.pack(order + "H", len(entries)) + directory + bytes(4) + further


def _bytes(samples: Array, order: str, planes: bool) -> bytes:
    laid = samples.transpose(2, 0, 1) if planes else samples
    return laid.astype(samples.dtype.newbyteorder(order)).tobytes()


def _packed(samples: Array) -> bytes:
    """12 bits a sample; rows of an even number of them."""
    text = "".join(f"{sample:012b}" for sample in samples.ravel().tolist())
    return int(text, 2).to_bytes(len(text) // 8, "big")


def pgm(samples: Array, most: int) -> bytes:
    kind = b"P5" if channels(samples) == 1 else b"P6"
    return kind + b"\n%d %d\n%d\n" % (samples.shape[1], samples.shape[0], most) + samples.astype(">u2").tobytes()


def channels(samples: Array) -> int:
    return samples.shape[2] if samples.ndim == 3 else 1
