"""docs/from-llm-serving.md names each route, member, reply and name of llm-serving, with what became of it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from msgspec import structs

from msx_frontend.apis.llm_serving import reply_schemas
from msx_frontend.apis.llm_serving.request import UNUSED, ServingParameters, ServingRequest

PAGE = (Path(__file__).parents[4] / "docs" / "from-llm-serving.md").read_text()
QUOTED = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
MEMBERS = [one.name for kind in (ServingRequest, ServingParameters) for one in structs.fields(kind)]
CLIENT = ("MindsporeInferenceClient", "ClientRequest", "Parameters", "Response", "StreamResponse", "Token")


def rows(section: str) -> dict[str, str]:
    """The rows of a section's table: what stands in the first cell, and the rest of the line."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ", 1) for line in text.splitlines() if line.startswith("| ")]
    return {line[0]: line[1] for line in lines if len(line) == 2}


@pytest.mark.parametrize("name", [name for name in MEMBERS if name not in ("parameters", "stream")])
def test_each_member_has_a_row(name: str) -> None:
    (row,) = [rest for first, rest in rows("Bodies").items() if f"`{name}`" in first]
    assert ("no effect" in row) == (name in UNUSED)


@pytest.mark.parametrize("kind", [reply_schemas.WholeText, reply_schemas.ServedModelInfo])
def test_each_member_of_a_reply(kind: type) -> None:
    named = {word for quoted in QUOTED for word in re.findall(r"\w+", quoted)}
    unsaid = {"model_id", "model_pipeline_tag", "version"}  # which say what their names say
    assert {one.name for one in structs.fields(kind)} - unsaid <= named


@pytest.mark.parametrize("name", CLIENT)
def test_each_name_of_the_client(name: str) -> None:
    assert getattr(import_module("mindspore_serving.client"), name) is not None
    assert name in QUOTED
