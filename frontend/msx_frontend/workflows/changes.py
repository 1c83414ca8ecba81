"""Changes of workflows: checked, saved, and only then in force."""

from __future__ import annotations

from msx_frontend.models.changes.change import Change
from msx_frontend.models.state import State
from msx_frontend.models.state_store import StoredWorkflow
from msx_frontend.workflows.workflow import Workflow, WorkflowRegistry


class RegisteringWorkflow(Change):
    """Its nodes are started when it is saved; requests go to it when all of them serve."""

    def __init__(self, registry: WorkflowRegistry, record: StoredWorkflow) -> None:
        self._registry, self._record = registry, record

    def check(self) -> None:
        self._registry.check_free(self._record.name)

    async def save(self, state: State) -> None:
        await state.save_workflow(self._record)

    def apply(self) -> None:
        """Nothing: its nodes take time."""


class UnregisteringWorkflow(Change):
    """`workflow` None: only the state knows it, because it could not be restored."""

    def __init__(self, registry: WorkflowRegistry, name: str, workflow: Workflow | None) -> None:
        self._registry, self._name, self._workflow = registry, name, workflow

    async def save(self, state: State) -> None:
        await state.remove_workflow(self._name)

    def apply(self) -> None:
        if self._workflow is not None:
            self._registry.remove(self._workflow)


class TakingWorkflowBack(Change):
    """Its nodes could not be started. `record` stood in the state before; None: nothing did."""

    at_end = True

    def __init__(self, name: str, record: StoredWorkflow | None) -> None:
        self._name, self._record = name, record

    async def save(self, state: State) -> None:
        if self._record is None:
            await state.remove_workflow(self._name)
        else:
            await state.save_workflow(self._record)

    def apply(self) -> None:
        """Nothing: it has not served."""
