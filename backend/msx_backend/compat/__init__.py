"""The package `ts` that TorchServe's handlers import: thin adapters over the SDK.

It is importable under the name `ts`, and last of all: a `ts` that is installed, or that the archive brings, wins. Where
MSX is installed msx_torchserve.pth sees to it; a worker of another interpreter asks for it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DEFAULT_HANDLERS = "ts.torch_handler"
TORCH_FILES = (".pt", ".pth", ".pth.tar", ".bin", ".pt2", ".onnx", ".so")


def offer() -> None:
    """Make `import ts` work in this process."""
    folder = str(Path(__file__).parent)
    while folder in sys.path:
        sys.path.remove(folder)
    sys.path.append(folder)


def default_handler(spec: str, manifest: dict[str, Any]) -> str:
    """TorchServe and MSX both have an `image_classifier`: torch's files are for TorchServe's."""
    files = manifest.get("model", {}).get("serializedFile") or ""
    if spec == "image_classifier" and files.endswith(TORCH_FILES):
        return f"{DEFAULT_HANDLERS}.{spec}"
    return spec
