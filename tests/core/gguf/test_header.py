"""Headers of GGUF files, of which nothing is trusted."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from msx_core.gguf import cursor, header
from msx_core.gguf.errors import GgufError
from msx_core.gguf.header import read_header
from tests.gguf_files import MAGIC, Stored, gguf, text, write
from tests.pages import ROOT

F32, Q4_1, Q8_0, IQ4_XS = 0, 3, 8, 23
NUMBERS = Stored((2, 3), F32, bytes(24))
BLOCKS = Stored((2, 64), Q8_0, bytes(2 * 2 * 34))


def test_metadata_and_tensors(tmp_path: Path) -> None:
    metadata = {"a.text": "ä", "a.flag": True, "a.number": 7, "a.half": 0.5, "a.list": ["x", "y"], "a.none": []}
    found = read_header(write(tmp_path / "m.gguf", metadata, {"one": NUMBERS, "two": BLOCKS}))
    assert found.metadata == metadata
    one, two = found.tensors["one"], found.tensors["two"]
    assert (one.kind.name, one.shape, one.size) == ("F32", (2, 3), 24)
    assert (two.kind.name, two.shape, two.size) == ("Q8_0", (2, 64), 136)
    assert one.start % 32 == 0
    assert two.start == one.start + 32


@pytest.mark.parametrize("alignment", [8, 64])
def test_the_file_says_how_tensors_are_aligned(tmp_path: Path, alignment: int) -> None:
    given = {"general.alignment": alignment}
    found = read_header(write(tmp_path / "m.gguf", given, {"one": NUMBERS, "two": BLOCKS}, alignment=alignment))
    assert found.tensors["one"].start % alignment == 0


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS, not the file itself: run `git lfs"),
        (b"<!doctype html><title>404</title>", "it is an HTML page: download it again"),
        (b"nothing of the kind", "it does not begin with GGUF"),
        (gguf({}, {}, version=1), "has the version 1; versions 2 and 3"),
        (MAGIC + struct.pack(">IQQ", 3, 0, 0), "bytes of numbers in the other order"),
        (gguf({}, {}, counts=(1 << 40, 0)), "says that it has 1,099,511,627,776 tensors; at most 65,536 are read"),
        (gguf({}, {}, counts=(0, 1 << 40)), "keys; at most 4,096 are read"),
        (gguf({}, {}, counts=(1, 0)), "ends within its header"),
        (gguf({"a": "x"}, {})[:-40], "ends within its header"),
        (MAGIC + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), "a key has 1,152,921,504,606,846,976 bytes; at most 256"),
        (gguf({"a": 1, "b": 2}, {}).replace(b"b", b"a"), "it has the key a twice"),
        (gguf({"split.count": 3}, {}), "one of 3 parts of a model; join them by llama-gguf-split --merge"),
        (gguf({"general.alignment": 33}, {}), "general.alignment: 33 is not a power of two"),
        (gguf({"general.alignment": 0}, {}), "general.alignment: 0 is not"),
        (gguf({"general.alignment": "x"}, {}), "general.alignment: x is not"),
    ],
)
def test_files_that_are_none(tmp_path: Path, data: bytes, says: str) -> None:
    refused(tmp_path, data, says)


def refused(folder: Path, data: bytes, says: str) -> None:
    path = folder / "m.gguf"
    path.write_bytes(data)
    with pytest.raises(GgufError, match=says):
        read_header(path)


def one_key(value: bytes) -> bytes:
    return MAGIC + struct.pack("<IQQ", 3, 0, 1) + text("k") + value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (struct.pack("<IQ", 8, 1 << 30), "k has 1,073,741,824 bytes; at most 1,048,576 are read"),
        (struct.pack("<IIQ", 9, 0, 1 << 40), "k has 1,099,511,627,776 values; at most 2,097,152"),
        (struct.pack("<IIQ", 9, 9, 1), "k has values of the unknown type 9"),
        (struct.pack("<I", 77), "k has values of the unknown type 77"),
        (struct.pack("<IQ", 8, 2) + b"\xff\xfe", "k is not UTF-8"),
        (struct.pack("<IIQ", 9, 10, 1 << 20), "ends within its header"),
    ],
)
def test_values_over_the_limits(tmp_path: Path, value: bytes, says: str) -> None:
    refused(tmp_path, one_key(value), says)


def test_all_metadata_together_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor, "MOST_BYTES", 2 << 20)
    refused(tmp_path, gguf({"a": ["x" * 1_000_000] * 3}, {}), "its metadata has more than 2 MiB")


def test_values_of_all_arrays_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte of a file becomes an object."""
    monkeypatch.setattr(cursor, "MOST_TOGETHER", 8, raising=False)
    assert read_header(write(tmp_path / "fits.gguf", {"a": [1] * 4, "b": ["x"] * 4}, {})).metadata["b"] == ["x"] * 4
    refused(tmp_path, gguf({"a": [1] * 4, "b": ["x"] * 5}, {}), "its arrays have more than 8 values together")


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ({"t": Stored((), F32, b"")}, "tensor t has 0 axes; 1 to 4 are read"),
        ({"t": Stored((1,) * 5, F32, b"")}, "tensor t has 5 axes"),
        ({"t": Stored((2, 0), F32, b"")}, r"tensor t cannot have the shape \(2, 0\)"),
        ({"t": Stored((2, 33), Q8_0, b"")}, "with blocks of 32"),
        ({"t": Stored((1 << 40, 1 << 40), F32, b"")}, "tensor t cannot have the shape"),
        ({"t": Stored((2, 256), IQ4_XS, b"")}, "tensor t has the type IQ4_XS, which is not read; F32, F16, Q4_0"),
        ({"t": Stored((2, 256), 99, b"")}, "tensor t has the type 99, which is not read"),
        ({"t": Stored((2, 3), F32, bytes(23))}, "tensor t ends at byte .* was not copied whole"),
        ({"t": Stored((2, 3), F32, bytes(24), 1 << 62)}, "tensor t ends at byte"),
        ({"t": Stored((2, 3), F32, bytes(64), 7)}, "begins at 7, which is not a multiple of 32"),
        ({"t": NUMBERS, "u": Stored((2, 3), F32, bytes(24), 0)}, "tensors t and u overlap"),
        ({"t" * 300: NUMBERS}, "the name of a tensor has 300 bytes; at most 256"),
    ],
)
def test_tensors_that_cannot_be(tmp_path: Path, tensors: dict[str, Stored], says: str) -> None:
    refused(tmp_path, gguf({}, tensors), says)


def test_a_tensor_is_there_once(tmp_path: Path) -> None:
    refused(tmp_path, gguf({}, {"one": NUMBERS, "two": NUMBERS}).replace(b"two", b"one"), "the tensor one twice")


def test_a_damaged_file_is_refused_or_read(tmp_path: Path) -> None:
    """Whatever byte is another one, or wherever it ends: no other error."""
    whole = bytearray(gguf({"a": "text", "b": [1, 2]}, {"one": NUMBERS, "two": BLOCKS}))
    path = tmp_path / "m.gguf"
    for place in range(len(whole) - 170):
        for change in (bytes(whole[:place]), bytes(whole[:place]) + b"\xff" + bytes(whole[place + 1 :])):
            path.write_bytes(change)
            try:
                read_header(path)
            except GgufError:
                continue


def test_limits_are_those_that_messages_name() -> None:
    limits: tuple[Any, ...] = (header.MOST_KEYS, header.MOST_TENSORS, header.MOST_NAME)
    assert limits == (4096, 65_536, 256)


def test_limits_are_those_of_the_page() -> None:
    said = f"{header.MOST_KEYS:,} keys, {header.MOST_TENSORS:,} tensors, {cursor.MOST_TEXT >> 20} MiB of a text, "
    said += f"{cursor.MOST_VALUES:,} values of a list, {cursor.MOST_TOGETHER:,} of all lists, "
    said += f"{cursor.MOST_BYTES >> 20} MiB in all"
    assert f"({said})" in (ROOT / "docs" / "quantised-weights.md").read_text()
