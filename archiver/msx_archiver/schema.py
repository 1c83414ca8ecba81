"""The two kinds of archives: of models, and of workflows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from msx_core.manifest import MANIFEST_PATH, Manifest, parse_manifest
from msx_core.workflow_manifest import WORKFLOW_MANIFEST_PATH, WorkflowManifest, parse_workflow_manifest

M = TypeVar("M", bound="Manifest | WorkflowManifest")


@dataclass(frozen=True)
class ArchiveSchema(Generic[M]):
    """The difference between the kinds of archives; `named_files` are the manifest's keys that name files."""

    noun: str
    tool: str
    manifest_path: str
    parse: Callable[[bytes], tuple[M, list[str]]]
    named_files: Callable[[M], dict[str, str | None]]


def _of_model(manifest: Manifest) -> dict[str, str | None]:
    model = manifest.model
    return {
        "serializedFile": (model.serialized_file or "").replace("{rank}", "0"),
        "modelFile": model.model_file,
        "requirementsFile": model.requirements_file,
        "configFile": model.config_file,
    }


def _of_workflow(manifest: WorkflowManifest) -> dict[str, str | None]:
    return {"specFile": manifest.workflow.spec_file, "handler": manifest.workflow.handler}


MODEL: ArchiveSchema[Manifest] = ArchiveSchema("model", "msx-archiver", MANIFEST_PATH, parse_manifest, _of_model)
WORKFLOW: ArchiveSchema[WorkflowManifest] = ArchiveSchema(
    "workflow", "msx-workflow-archiver", WORKFLOW_MANIFEST_PATH, parse_workflow_manifest, _of_workflow
)
