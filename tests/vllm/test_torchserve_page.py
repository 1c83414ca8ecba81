"""docs/from-torchserve-vllm.md says what becomes of each member of TorchServe's section."""

from __future__ import annotations

import re
from pathlib import Path

from msx_core.config.vllm_section import DECIDED
from msx_frontend.apis.openai.model_paths import PATHS
from msx_torchserve.packages.ts.llm_launcher import ENGINES, parser
from msx_torchserve.packages.ts.torch_handler._vllm_settings import READ
from msx_torchserve.packages.ts.torch_handler.vllm_handler import REPLACED
from tests.e2e.torchserve_vllm import EXAMPLES
from tests.frontend.apis.families import all_families

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "from-torchserve-vllm.md").read_text()
NAMED = set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)))


def test_each_member_of_the_section_has_a_row() -> None:
    rows = {row.split("|")[1].strip(" `") for row in PAGE.splitlines() if row.startswith("| `")}
    assert {"model_path", "vllm_engine_config", "adapters", "chat_template", *READ} <= rows


def test_what_is_named_is_what_the_server_decides() -> None:
    row = next(row for row in PAGE.splitlines() if row.startswith("| what the server decides"))
    assert set(re.findall(r"`([a-z_]+)`", row)) <= DECIDED.keys() - set(READ)


def test_methods_that_are_refused_are_named() -> None:
    assert set(REPLACED) <= NAMED


def test_each_example_has_a_row() -> None:
    rows = PAGE.partition("## Its examples")[2].partition("\n## ")[0].splitlines()
    assert {row.split("|")[1].strip(" `") for row in rows if row.startswith("| `")} == EXAMPLES.keys()


def test_each_flag_of_the_launcher_has_a_row() -> None:
    flags = {flag for action in parser()._actions for flag in action.option_strings} - {"-h", "--help", "--engine"}
    assert flags <= NAMED
    assert {f"--engine {engine}" for engine in ENGINES} <= NAMED


def test_each_path_below_a_version_is_named() -> None:
    below = PATHS[0].removesuffix("/v1")
    paths = [route.path for family in all_families() for route in family.routes if route.path.startswith(PATHS[0])]
    assert len(paths) == 3
    assert {path.removeprefix(below) for path in paths} <= NAMED
