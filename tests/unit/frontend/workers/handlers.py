"""Model folders with a handler in them, and what real workers are started from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msx_frontend.workers.crew import RankSpec
from msx_frontend.workers.group import GroupSpec
from msx_protocol import Load
from tests.unit.backend.harness import SERVICES, load_message


def model_of(folder: Path, code: str) -> Load:
    """A model whose handler is `code` (its text), or the service of that name."""
    model_dir = folder / "model"
    model_dir.mkdir(exist_ok=True)
    (model_dir / "h.py").write_text(code if "\n" in code else (SERVICES / f"{code}.py").read_text())
    return load_message(model_dir, "h.py")


def spec_of(folder: Path, code: str, **options: Any) -> GroupSpec:
    load = model_of(folder, code)
    for name in ("batch_size", "isolate_batch_errors"):
        setattr(load, name, options.pop(name, getattr(load, name)))
    rank = RankSpec(load, options.pop("env", dict(os.environ)), options.pop("work_dir", folder / "work" / "w1"))
    values: dict[str, Any] = {
        "ranks": (rank,),
        "startup_timeout": 30.0,
        "response_timeout": 30.0,
        "max_concurrent": 8,
    }
    return GroupSpec(**{**values, **options})
