"""docs/torchserve-handlers.md has a row for each example that a test runs, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = Path(__file__).parent / "examples"


def test_each_example_of_the_page_has_a_test() -> None:
    page = (ROOT / "docs" / "torchserve-handlers.md").read_text()
    table = page.partition("## Its examples")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    named = {Path(name).name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    tests = {
        name for file in TESTS.glob("test_*.py") for name in re.findall(r"^def test_(\w+)", file.read_text(), re.M)
    }
    own = {"Huggingface_Transformers": "bert_with_captum", "xgboost_classfication": "xgboost", "fast-rcnn": "fast_rcnn"}
    assert {own.get(name, name) for name in named} <= tests
