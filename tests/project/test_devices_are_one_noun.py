"""Which kinds of devices there are stands in the server's `devices/` and in the engine's `kernels/` only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("sdk", "archiver", "backend", "frontend", "compat")
ALLOWED_FOLDERS = ("msx_frontend/devices/", "msx_llm/kernels/", "/compat/")
"""The last one speaks MindSpore Serving's names of devices, which its users type."""

KINDS = re.compile(r"(?i)\bnpus?\b|_npu|npu_|npu-smi|ascend(?!ing)|hccl|\bcann\b|davinci|cuda|nvidia|rt_visible")
TYPED = {
    "number_of_npu": "a key of config.properties",
    "TS_NUMBER_OF_NPU": "its variable",
    "npu_id": "a member of TorchServe's system_properties",
    "npu": "a word of deviceType in model-config.yaml",
    "--npu": "an option of `msx-serve plan`",
    "CUDA": "a word in errors of torch",
    "/v2/cudasharedmemory": "a path of KServe",
    "vllm-ascend": "a package of PyPI",
    "hccl_world_group": "a name in MindIR files, and in MindSpore's own table",
}
"""Names that users type, or that other software wrote."""


def words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Strings without spaces, and the modules that are imported; text for people and docstrings are left out."""
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            if " " not in node.value:
                yield node.lineno, node.value
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)


def test_no_other_module_names_a_kind_of_device() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for source in SOURCES
        for path in sorted((ROOT / source).rglob("*.py"))
        if not any(folder in path.as_posix() for folder in ALLOWED_FOLDERS)
        for line, word in words(ast.parse(path.read_text()))
        if word not in TYPED and KINDS.search(word)
    ]
    assert found == []
