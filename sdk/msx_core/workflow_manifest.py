"""`WAR-INF/MANIFEST.json` of a workflow archive: TorchServe's, with a size and a digest for every file added."""

from typing import Any

import msgspec

from msx_core.manifest import FileEntry, Name, Text, check_manifest, manifest_tree

WORKFLOW_MANIFEST_PATH = "WAR-INF/MANIFEST.json"


class WorkflowEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The `workflow` section. `spec_file` and `handler` name files at the archive's root."""

    workflow_name: Name
    spec_file: Text
    handler: Text | None = None


class WorkflowManifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A workflow archive's manifest. `files` is empty in archives that torch-workflow-archiver made."""

    created_on: str | None = None
    workflow: WorkflowEntry
    archiver_version: str | None = None
    files: dict[str, FileEntry] = {}

    def to_json(self) -> bytes:
        """The manifest as the indented JSON that archives carry."""
        return msgspec.json.format(msgspec.json.encode(self.to_dict()), indent=2) + b"\n"

    def to_dict(self) -> dict[str, Any]:
        """The manifest with TorchServe's keys, without those that have no value."""
        return manifest_tree(self)


def parse_workflow_manifest(data: bytes) -> tuple[WorkflowManifest, list[str]]:
    """Decodes a manifest; returns it with one sentence for each key that was ignored. Raises ManifestError."""
    return check_manifest(data, WorkflowManifest, WORKFLOW_MANIFEST_PATH, {"workflow": WorkflowEntry})
