"""The package `ts` that TorchServe's handlers import: thin adapters over the SDK.

It is importable under the name `ts`, and last of all: a `ts` that is installed, or that the archive brings, wins. Where
MSX is installed msx_compat.pth sees to it; a worker offers every handler package that is installed.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TORCH_FILES = (".pt", ".pth", ".pth.tar", ".bin", ".pt2", ".onnx", ".so")


class TorchServePackage:
    """The entry point `ts` in the group `msx.handler_packages`."""

    name = "ts.torch_handler"

    def offer(self) -> None:
        """Makes `import ts` work in this process."""
        folder = str(Path(__file__).parent / "packages")
        while folder in sys.path:
            sys.path.remove(folder)
        sys.path.append(folder)

    def handler_for(self, handler: str, manifest: Mapping[str, Any]) -> str:
        """TorchServe and MSX both have an `image_classifier`: TorchServe's is used for torch's files."""
        files = manifest.get("model", {}).get("serializedFile") or ""
        if handler == "image_classifier" and files.endswith(TORCH_FILES):
            return f"{self.name}.{handler}"
        return handler
