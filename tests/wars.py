"""Workflow archives for tests: of a spec as text, with tests/services/workflow_node.py for functions."""

from __future__ import annotations

from pathlib import Path

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_archiver.pack_workflow import pack_workflow
from msx_archiver.workflow_options import WorkflowOptions

NODE = Path(__file__).parent / "services" / "workflow_node.py"

MODELS = """models:
  min-workers: 1
  max-workers: 1
  batch-size: 3
  max-batch-delay: 0
  retry-attempts: 0
  timeout-ms: 60000
  m1:
    url: m1.mar
  m2:
    url: m2.mar
"""
CHAIN = "dag:\n  pre: [m1]\n  m1: [post]\n"
FAN = "dag:\n  pre: [m1, m2]\n  m1: [post]\n  m2: [post]\n"


def pack_war(store: Path, name: str, spec: str, *, functions: bool = True) -> Path:
    spec_file = store.parent / f"{name}.yaml"
    spec_file.write_text(spec)
    options = WorkflowOptions(
        workflow_name=name,
        spec_file=str(spec_file),
        handler=str(NODE) if functions else None,
        export_path=store,
        force=True,
    )
    return pack_workflow(options)


def pack_node(store: Path, name: str, version: str = "1.0") -> Path:
    """A model that behaves as its node is told."""
    return pack(PackOptions(model_name=name, version=version, handler=str(NODE), export_path=store, force=True))
