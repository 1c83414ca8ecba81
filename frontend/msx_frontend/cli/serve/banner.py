"""What the user of `msx-serve PATH` is told: where the model answers, and how it is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from msx_frontend.archives.guess import MINDIR, mindirs_in
from msx_sdk._internal.mindir import read_signature

if TYPE_CHECKING:
    from msx_frontend.assembly.instance import InstanceInfo

LARGEST_EXAMPLE = 64
"""Values of an example; above it the user is told of a file."""


def banner(info: InstanceInfo, name: str, path: Path, served: str) -> str:
    """`served`: what is served, and what it was taken for."""
    lines = {
        "model": f"{name}: {served}",
        "predict": f"{info.inference}/predictions/{name}",
        "manage": f"{info.management}/models/{name}",
        "try it": f"{info.inference}/playground#/predict/{name}",
        "console": f"{info.management}/console",
        "keys": info.key_file or "off",
    }
    shown = "\n".join(f"  {title:<8}  {text}" for title, text in lines.items())
    return f"{shown}\n\n  {curl(info, name, path)}\n\nCtrl-C ends it."


def curl(info: InstanceInfo, name: str, path: Path) -> str:
    """A line for the shell; the key is read from its file."""
    read = f'python3 -c \'import json; print(json.load(open("{info.key_file}"))["inference"]["key"])\''
    key = f'-H "Authorization: Bearer $({read})" ' if info.key_file else ""
    return f"curl {key}{_body(path)} {info.inference}/predictions/{name}"


def _body(path: Path) -> str:
    example = _example(path)
    if example is None:
        return "-H 'Content-Type: application/octet-stream' --data-binary @FILE"
    return f"-H 'Content-Type: application/json' -d '{json.dumps(example)}'"


def _example(path: Path) -> object:
    """A body that the model takes; None where nobody can tell."""
    if path.is_dir() and (path / "tokenizer.json").is_file():
        return {"prompt": "Once upon a time", "max_new_tokens": 20}
    files = [path] if path.suffix == MINDIR else mindirs_in(path) if path.is_dir() else []
    return _zeros(files[0]) if len(files) == 1 else None


def _zeros(file: Path) -> object:
    try:
        inputs = read_signature(file).inputs
    except (OSError, ValueError):
        return None
    shapes = {one.name: [max(size, 1) for size in one.shape or ()] for one in inputs}
    if not shapes or sum(_size(shape) for shape in shapes.values()) > LARGEST_EXAMPLE:
        return None
    return {name: _nested(shape) for name, shape in shapes.items()}


def _size(shape: list[int]) -> int:
    size = 1
    for one in shape:
        size *= one
    return size


def _nested(shape: list[int]) -> object:
    return [_nested(shape[1:]) for _ in range(shape[0])] if shape else 0
