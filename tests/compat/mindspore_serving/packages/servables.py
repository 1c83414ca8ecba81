"""Makes servables for tests."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from msx_core.servables import Servable, load_servable
from msx_sdk.errors import HandlerLoadError

ADD = """
from mindspore_serving.server import register

def add(x, y):
    return x + y

@register.register_method(output_names=["z"])
def sum_of(x, y):
    "Adds two numbers."
    z = register.add_stage(add, x, y, outputs_count=1)
    return z
"""


def write(folder: Path, source: str, name: str = "add") -> Path:
    """The folder of a servable whose servable_config.py has this source."""
    root = folder / name
    root.mkdir(parents=True, exist_ok=True)
    (root / "servable_config.py").write_text(
        "from mindspore_serving.server.register import *\n" + textwrap.dedent(source)
    )
    return root


def declared(folder: Path, source: str, name: str = "add") -> Servable:
    return load_servable(write(folder, source, name), name)


def refused(folder: Path, source: str) -> str:
    """Error at the import of such a servable, without the words that every import's failure begins with."""
    with pytest.raises(HandlerLoadError) as caught:
        declared(folder, source)
    return str(caught.value).removeprefix("import add.servable_config failed, ")
