"""Model folders with a handler in them, and what real workers are started from."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from msx_frontend.workers.launcher import GroupSpec, RankSpec
from msx_protocol import Load
from tests.backend.harness import SERVICES, load_message


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
    env = options.pop("env", dict(os.environ))
    values: dict[str, Any] = {
        "ranks": (RankSpec(load=load, env=env),),
        "startup_timeout": 120.0,
        "response_timeout": 120.0,
        "max_concurrent": 8,
    }
    return GroupSpec(**{**values, **options})


def ranks_of(spec: GroupSpec, number: int) -> GroupSpec:
    """The same model on several ranks."""
    (rank,) = spec.ranks
    loads = [
        structs.replace(rank.load, rank=one, local_rank=one, world_size=number, input_ranks=number)
        for one in range(number)
    ]
    return replace(spec, ranks=tuple(RankSpec(load=load, env=rank.env) for load in loads))
