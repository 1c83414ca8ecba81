from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import msx_sdk

HEAVY = ("numpy", "mindspore", "starlette", "grpc", "yaml", "uvicorn", "PIL")


def test_all_is_sorted_and_complete() -> None:
    public = {name for name, value in vars(msx_sdk).items() if not isinstance(value, ModuleType)}
    assert msx_sdk.__all__ == sorted(name for name in public if not name.startswith("_"))


def test_importing_the_sdk_is_cheap() -> None:
    code = f"import msx_sdk, msx_sdk.testing, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
