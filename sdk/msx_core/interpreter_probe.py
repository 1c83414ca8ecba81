"""Program that tells what an interpreter has. It runs by `-c` in that interpreter, which may have another MSX, or none:
it imports the standard library, and of MSX what its arguments name."""

from __future__ import annotations

import ast
import json
import site
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ENGINE_ARGUMENTS = ("EngineArgs", "AsyncEngineArgs")
"""Classes of vLLM whose members are the arguments of its engine."""
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
        "vllm_arguments": vllm_arguments(),
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


def vllm_arguments() -> list[str]:
    """Names of the arguments of vLLM's engine, none without vLLM. Its source is read: importing it takes seconds."""
    try:
        places = find_spec("vllm").submodule_search_locations  # type: ignore[union-attr]
        tree = ast.parse(Path(places[0], "engine", "arg_utils.py").read_text())  # type: ignore[index]
    except (AttributeError, ImportError, OSError, SyntaxError, TypeError, ValueError):
        return []
    classes = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name in ENGINE_ARGUMENTS]
    members = [one.target for made in classes for one in made.body if isinstance(one, ast.AnnAssign)]
    return sorted({target.id for target in members if isinstance(target, ast.Name)})


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
