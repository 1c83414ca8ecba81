"""Every API family is in import-linter's contract that keeps them independent of each other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
APIS = ROOT / "frontend/msx_frontend/apis"


def test_each_folder_of_apis_is_in_the_contract() -> None:
    _, contract = (ROOT / "pyproject.toml").read_text().split('type = "independence"\n')
    listed = re.findall(r'"msx_frontend\.apis\.(\w+)"', contract.partition("]")[0])
    assert sorted(listed) == sorted(path.parent.name for path in APIS.glob("*/__init__.py"))
