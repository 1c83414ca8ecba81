"""A class name means one thing in all of the product."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "sdk/msx_core",
    "sdk/msx_sdk",
    "archiver/msx_archiver",
    "compat/msx_torchserve",
    "compat/msx_mindspore_serving",
    "backend/msx_protocol",
    "backend/msx_backend",
    "backend/msx_llm",
    "backend/msx_vllm",
    "frontend/msx_net",
    "frontend/msx_frontend",
    "frontend/msx_ray",
)

TWICE = {
    "Context": "TorchServe's handlers import it from `ts.context`, and servables of MindSpore Serving "
    "theirs from `register`; handlers of MSX have `msx_sdk.Context`",
    "ImageClassifier": "TorchServe's handlers import it from `ts`; `--handler image_classifier` is MSX's",
    "Metric": "TorchServe's handlers import it from `ts.metrics`; handlers of MSX have `msx_sdk.metrics`",
    "Parameters": "llm-serving's clients import it from `mindspore_serving.client`; the other is of TGI's requests",
    "Reply": "handler authors test with `msx_sdk.testing.Reply`; in the server it is the reply of a route",
    "RequestProcessor": "TorchServe's handlers meet it in `ts.context`; it has the same role in `msx_sdk`",
    "Response": "llm-serving's clients import it from `mindspore_serving.client`; the other is of OpenAI's /responses",
    "SSLConfig": "MindSpore Serving has one for clients and one for servers",
    "Token": "llm-serving's clients import it from `mindspore_serving.client`; handlers have `msx_sdk.generation`",
}
"""Names that stand in two places, and why."""


def class_names(*folders: Path) -> dict[str, list[str]]:
    """The modules of each class name, public or private, nested ones too."""
    found = defaultdict(list)
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(str(path.relative_to(folder)))
    return found


def test_a_name_that_stands_twice_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Call: ...\nclass Once: ...\n")
    (tmp_path / "b.py").write_text("def f():\n    class Call: ...\n")
    assert class_names(tmp_path)["Call"] == ["a.py", "b.py"]


def test_no_class_name_stands_twice() -> None:
    twice = {
        name: modules
        for name, modules in class_names(*(ROOT / package for package in PACKAGES)).items()
        if len(modules) > 1
    }
    assert {name: twice[name] for name in twice if name not in TWICE} == {}
    assert TWICE.keys() - twice.keys() == set(), "these stand once"
