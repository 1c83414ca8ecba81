from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.file_kinds import CKPT, MINDIR, SAFETENSORS, foreign_kind, head_of, mistaken

DATA = Path(__file__).parent / "data"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1\n"
ONNX = b"\x08\x08\x12\x07pytorch\x1a\x032.1:\x05"
WEIGHTS = (40).to_bytes(8, "little") + b'{"w":{"dtype":"F32"}}'
PARAMETER = b"\n\xac\x02\n\x04fc.w\x12\x10"


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (POINTER, "is not a MindIR file, it is a pointer of Git LFS, not the file itself: run `git lfs pull`"),
        (ONNX, "it is an ONNX model: export the network by mindspore.export(…, file_format='MINDIR')"),
        (b"\x08\x03:\x10", "it is an ONNX model"),
        (b"IMOD\x00\x01", "it is an OM model, compiled for one kind of Ascend device: export the network"),
        (PARAMETER, "it is a checkpoint of MindSpore: give it the ending .ckpt"),
        (WEIGHTS, "it is a safetensors file: give it the ending .safetensors"),
        (b"\n <!DOCTYPE html><html>", "it is an HTML page: download it again"),
        (b"\xef\xbb\xbf<HTML lang=en>", "it is an HTML page"),
        (b'<?xml version="1.0"?><Error>', "it is an XML document, such as the error of a store: download it again"),
        (b"PK\x03\x04rest", "it is a zip file, as PyTorch's checkpoints are"),
        (b"\x80\x02}q\x00.", "it is a pickle"),
        (b"GGUF\x03", "it is a GGUF model"),
        (b"\x89HDF\r\n\x1a\n", "it is an HDF5 file"),
        (b"\x1f\x8b\x08", "it is a gzipped file: unpack it"),
    ],
)
def test_a_kind_is_told_by_the_first_bytes(head: bytes, words: str) -> None:
    assert words in (mistaken("net.mindir", MINDIR, head) or "")


@pytest.mark.parametrize("file", sorted(DATA.glob("*.mindir")), ids=lambda path: path.name)
def test_mindir_files_are_no_other_kind(file: Path) -> None:
    head = head_of(file)
    assert mistaken("m", MINDIR, head) is None
    if file.name != "enc.mindir":
        assert mistaken("m.ckpt", CKPT, head) == (
            "m.ckpt is not a checkpoint of MindSpore, it is a MindIR file: give it the ending .mindir"
        )


@pytest.mark.parametrize(("ending", "head"), [(CKPT, PARAMETER), (SAFETENSORS, WEIGHTS)])
def test_a_file_is_what_its_ending_says(ending: str, head: bytes) -> None:
    assert mistaken("m", ending, head) is None


@pytest.mark.parametrize(
    "head", [b"", b"\n", b"\x08", b"\x08\x08", b"\x00" * 64, b"\xff" * 64, b"\n\xff\xff", b"import os\n"]
)
def test_what_tells_nothing_is_of_no_kind(head: bytes) -> None:
    for ending in (MINDIR, CKPT, SAFETENSORS):
        assert mistaken("m", ending, head) is None


def test_pointers_and_pages_came_in_the_place_of_any_file() -> None:
    assert foreign_kind(POINTER) is not None
    assert foreign_kind(b"<html>") is not None
    assert foreign_kind(ONNX) is None
    assert foreign_kind(b'{"a": 1}') is None
