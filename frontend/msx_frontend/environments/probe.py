"""Program that tells what an interpreter has. It runs by `-c` in that interpreter, which may have another MSX, or none:
it imports the standard library, and of MSX what its arguments name."""

from __future__ import annotations

import json
import site
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

MARK = "msx-interpreter "
"""Beginning of its line: what it imports may write others."""


def main() -> None:
    """Arguments: the module of workers, that of their protocol, and packages that are looked for by their metadata."""
    worker, protocol, *packages = sys.argv[1:]
    told = {
        "version": sys.version,
        "site_dirs": site.getsitepackages(),
        "packages": installed(packages),
        **_protocol(protocol),
        "problem": _problem(worker),
    }
    sys.stdout.write(f"\n{MARK}{json.dumps(told)}\n")


def installed(packages: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _protocol(module: str) -> dict[str, Any]:
    """Its number and its file; 0 where there is none."""
    try:
        found: Any = import_module(module)
    except Exception:
        return {"protocol": 0, "file": ""}
    return {"protocol": getattr(found, "PROTOCOL_VERSION", 0), "file": found.__file__}


def _problem(worker: str) -> str:
    try:
        import_module(worker)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    main()
