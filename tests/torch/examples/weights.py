"""Random weights of the models of examples, by the class in the file that is packed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from tests.torch_models import saved, torch


def weights(file: Path) -> bytes:
    """State of the one model of the file."""
    return saved(model_of(file).state_dict())


def model_of(file: Path) -> Any:
    torch.manual_seed(7)
    found = runpy.run_path(str(file), run_name="model")
    [made] = [one for one in found.values() if isinstance(one, type) and one.__module__ == "model"]
    return made().eval()
