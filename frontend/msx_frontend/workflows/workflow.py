"""A registered workflow, and the registry of workflows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.errors import ServiceError, ServiceUnavailable
from msx_frontend.management_errors import Conflict
from msx_frontend.models.model_version import ModelVersion
from msx_frontend.workflows.errors import WorkflowNotFound
from msx_sdk._internal.workflow_spec import WorkflowSpec


def node_model(workflow: str, node: str) -> str:
    """The name of the model that is a node (TorchServe's)."""
    return f"{workflow}__{node}"


class RunningRequest(Protocol):
    ended: asyncio.Future[None]

    def cancel(self, error: ServiceError) -> None: ...


@dataclass(eq=False)
class Workflow:
    """`digest` is that of its unpacked archive; `versions` are the models of its nodes, by the names of the nodes."""

    name: str
    url: str
    digest: str
    spec: WorkflowSpec
    versions: dict[str, ModelVersion] = field(default_factory=dict)
    executions: set[RunningRequest] = field(default_factory=set)
    """The running requests."""

    @cached_property
    def archive(self) -> ArchiveUrl:
        return ArchiveUrl.split(self.url)


class WorkflowRegistry:
    def __init__(self) -> None:
        self._workflows: dict[str, Workflow] = {}
        self._refusing = False

    def refuse_new(self) -> None:
        """The server is ending: requests are refused from now on. Running requests may finish."""
        self._refusing = True

    def check_serving(self) -> None:
        if self._refusing:
            raise ServiceUnavailable("The server is shutting down and takes no more requests.")

    def find(self, name: str) -> Workflow:
        if name not in self._workflows:
            raise WorkflowNotFound(f"Workflow not found: {name}")
        return self._workflows[name]

    def check_free(self, name: str) -> None:
        if name in self._workflows:
            raise Conflict(f"Workflow {name} is already registered.")

    def names(self) -> list[str]:
        return sorted(self._workflows)

    def add(self, workflow: Workflow) -> None:
        self._workflows[workflow.name] = workflow

    def remove(self, workflow: Workflow) -> None:
        self._workflows.pop(workflow.name, None)

    def busy(self) -> bool:
        return any(workflow.executions for workflow in self._workflows.values())

    def cancel_all(self, error: ServiceError) -> None:
        for workflow in self._workflows.values():
            for execution in list(workflow.executions):
                execution.cancel(error)
