"""Message to the user of `msx-serve PATH`: where the model answers, and how to call it."""

from __future__ import annotations

import json
import shlex
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msx_core.file_kinds import GGUF
from msx_core.mindir import TensorSpec, read_signature
from msx_frontend.archives.guess import MINDIR, mindirs_in
from msx_frontend.models.schemas.tensor_examples import example_shape, example_value
from msx_net.listening.address import Address

if TYPE_CHECKING:
    from msx_frontend.assembly.info import InstanceInfo

LARGEST_EXAMPLE = 64
"""Values of an example that stands in the line; a larger one is made by a command before it."""
MOST_VALUES = 1_000_000
"""Values of an example; above it the user is told of a file."""
SOCKETS_URL = "http://localhost"
"""The beginning of URLs by a Unix socket, which only have to name some host."""


class Way(NamedTuple):
    """How a client on this machine reaches a listener: the beginning of its URLs, and the Unix socket, if it is one."""

    url: str
    socket: str = ""

    @classmethod
    def to(cls, listener: str) -> Way:
        address = Address.parse(listener)
        return cls(SOCKETS_URL, address.path) if address.is_unix else cls(listener)

    def shown(self, path: str) -> str:
        return f"{self.url}{path}" + (f" by the socket {self.socket}" if self.socket else "")

    def page(self, path: str) -> str:
        """The same for a browser."""
        return f"not for a browser: {self.socket} is a Unix socket" if self.socket else f"{self.url}{path}"


def banner(info: InstanceInfo, name: str, path: Path, served: str) -> str:
    """`served`: what is served, and what it was taken for."""
    inference, management = Way.to(info.inference), Way.to(info.management)
    lines = {
        "model": f"{name}: {served}",
        "predict": inference.shown(f"/predictions/{name}"),
        "manage": management.shown(f"/models/{name}"),
        "try it": inference.page(f"/playground#/predict/{name}"),
        "console": management.page("/console"),
        "keys": info.key_file or "off",
    }
    shown = "\n".join(f"  {title:<8}  {text}" for title, text in lines.items())
    return f"{shown}\n\n  {curl(info, name, path)}\n\nCtrl-C ends it."


def curl(info: InstanceInfo, name: str, path: Path) -> str:
    """A line for the shell; the key is read from its file."""
    way = Way.to(info.inference)
    socket = f"--unix-socket {shlex.quote(way.socket)} " if way.socket else ""
    trusted = way.url.startswith("https:") and info.certificate_file
    certificate = f"--cacert {shlex.quote(trusted)} " if trusted else ""
    key = f'-H "Authorization: Bearer $({_key_reader(info.key_file)})" ' if info.key_file else ""
    made, body = _body(path)
    return f"{made}curl {socket}{certificate}{key}{body} {way.url}/predictions/{name}"


def _key_reader(file: str) -> str:
    source = f'import json; print(json.load(open({json.dumps(file)}))["inference"]["key"])'
    return f"python3 -c {shlex.quote(source)}"


def _body(path: Path) -> tuple[str, str]:
    """The command that makes a large body, if it is one, and curl's options for it."""
    if path.suffix == GGUF or (path.is_dir() and (path / "tokenizer.json").is_file()):
        return "", _json(json.dumps({"prompt": "Once upon a time", "max_new_tokens": 20}))
    inputs = _inputs(path)
    shapes = {one.name: example_shape(one.shape) for one in inputs}
    values = {one.name: example_value(one.name, one.kserve_datatype or "") for one in inputs}
    size = sum(prod(shape) for shape in shapes.values())
    if not 0 < size <= MOST_VALUES:
        return "", "-H 'Content-Type: application/octet-stream' --data-binary @FILE"
    if size <= LARGEST_EXAMPLE:
        return "", _json(json.dumps({name: _nested(values[name], shape) for name, shape in shapes.items()}))
    members = ", ".join(f"{name!r}: {_expression(values[name], shape)}" for name, shape in shapes.items())
    source = f"import json; print(json.dumps({{{members}}}))"
    return f"python3 -c {shlex.quote(source)} | ", _json("@-")


def _json(body: str) -> str:
    return f"-H 'Content-Type: application/json' -d {shlex.quote(body)}"


def _inputs(path: Path) -> list[TensorSpec]:
    """Reads the inputs of the one MindIR file that is the path, or in it; none where nobody can tell."""
    files = [path] if path.suffix == MINDIR else mindirs_in(path) if path.is_dir() else []
    try:
        return read_signature(files[0]).inputs if len(files) == 1 else []
    except (OSError, ValueError):
        return []


def _nested(value: Any, shape: list[int]) -> Any:
    return [_nested(value, shape[1:]) for _ in range(shape[0])] if shape else value


def _expression(value: Any, shape: list[int]) -> str:
    """The same as Python's source."""
    made = repr(value)
    for size in reversed(shape):
        made = f"[{made}]*{size}"
    return made
