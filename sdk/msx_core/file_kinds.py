"""Tells by its first bytes what a file is that stands where a model's file was expected."""

from pathlib import Path
from typing import NamedTuple

HEAD = 256
"""Bytes by which a kind is known."""
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""The beginning of a pointer (git-lfs's specification)."""


class FileKind(NamedTuple):
    """`name`: with its article; `remedy`: how to get the right file, "" where it has to be made anew."""

    name: str
    remedy: str = ""


MINDIR, CKPT, SAFETENSORS, GGUF = ".mindir", ".ckpt", ".safetensors", ".gguf"
_WANTED = {
    MINDIR: FileKind("a MindIR file", "export the network by mindspore.export(…, file_format='MINDIR')"),
    CKPT: FileKind("a checkpoint of MindSpore", "write it by mindspore.save_checkpoint"),
    SAFETENSORS: FileKind("a safetensors file", "write the weights as safetensors"),
    GGUF: FileKind("a GGUF model", "convert the model by convert_hf_to_gguf.py of llama.cpp"),
}
"""The files that are expected, by their endings, and how they are made."""
_PAGE = FileKind("an HTML page", "download it again")
_POINTER = FileKind("a pointer of Git LFS, not the file itself", "run `git lfs pull`")
_BINARY = {
    LFS_POINTER: _POINTER,
    b"IMOD": FileKind("an OM model, compiled for one kind of Ascend device"),
    b"\x89HDF\r\n": FileKind("an HDF5 file"),
    b"PK\x03\x04": FileKind("a zip file, as PyTorch's checkpoints are"),
    b"\x80\x02": FileKind("a pickle, as PyTorch's older checkpoints are"),
    b"\x1f\x8b": FileKind("a gzipped file", "unpack it"),
}
_MARKUP = {
    b"<!doctype html": _PAGE,
    b"<html": _PAGE,
    b"<?xml": FileKind("an XML document, such as the error of a store", "download it again"),
}
_ONNX_FIELDS = b'\x12\x1a"(2:B'
"""The first bytes of fields that follow the version of ONNX's IR."""


def mistaken(name: str, ending: str, head: bytes) -> str | None:
    """The sentence, without its full stop, for a file that begins with `head` and is not what its `ending` says; None
    for one that is, or whose kind is unknown."""
    wanted = _WANTED[ending]
    own = _own_ending(head)
    kind = _foreign(head) if own is None else _WANTED[own]
    if kind is None or own == ending:
        return None
    remedy = f"give it the ending {own}" if own is not None else kind.remedy or wanted.remedy
    return f"{name} is not {wanted.name}, it is {kind.name}: {remedy}"


def foreign_kind(head: bytes) -> FileKind | None:
    """The kind of a file that is none of a model's, but came in its place: a pointer or a page."""
    kind = _foreign(head)
    return kind if kind is not None and kind.remedy else None


def head_of(path: Path) -> bytes:
    """Raises OSError."""
    with path.open("rb") as file:
        return file.read(HEAD)


def _own_ending(head: bytes) -> str | None:
    """The ending of a file of these formats. MindIR begins with a text, its version, and a checkpoint with a message,
    whose first field is the name of a tensor."""
    if head[8:10] == b'{"':
        return SAFETENSORS
    if head[:4] == b"GGUF":
        return GGUF
    if head[:1] != b"\n":
        return None
    first = next((at for at in range(1, min(11, len(head))) if head[at] < 128), len(head)) + 1
    if head[first : first + 1] == b"\n":
        return CKPT
    return MINDIR if head[first : first + 1].isdigit() else None


def _foreign(head: bytes) -> FileKind | None:
    for beginning, kind in _BINARY.items():
        if head.startswith(beginning):
            return kind
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for beginning, kind in _MARKUP.items():
        if text.startswith(beginning):
            return kind
    is_onnx = head[:1] == b"\x08" and head[1:2] < b"\x80" and head[2:3] != b"" and head[2:3] in _ONNX_FIELDS
    return FileKind("an ONNX model") if is_onnx else None
