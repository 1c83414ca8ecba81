"""Changes of workflows: checked, saved, and only then in force."""

import msgspec

from msx_frontend.models.changes.change import Change
from msx_frontend.models.state.state import State
from msx_frontend.models.state.store import UNANSWERED, StoredWorkflow
from msx_frontend.workflows.workflow import Workflow, WorkflowRegistry


class RegisteringWorkflow(Change):
    """Its nodes are started when it is saved. The next start has it once it is confirmed."""

    def __init__(self, registry: WorkflowRegistry, record: StoredWorkflow) -> None:
        self._registry, self._record = registry, record

    def check(self) -> None:
        self._registry.check_free(self._record.name)

    async def save(self, state: State) -> None:
        await state.save_workflow(msgspec.structs.replace(self._record, created_at=UNANSWERED))

    def apply(self) -> None:
        """Nothing: its nodes take time."""

    def is_news(self) -> bool:
        return False


class ConfirmingWorkflow(Change):
    """All of its nodes serve: so does the workflow, which the next start has, too."""

    def __init__(self, registry: WorkflowRegistry, workflow: Workflow, record: StoredWorkflow) -> None:
        self._registry, self._workflow, self._record = registry, workflow, record

    async def save(self, state: State) -> None:
        await state.save_workflow(self._record)

    def apply(self) -> None:
        self._registry.add(self._workflow)


class UnregisteringWorkflow(Change):
    """`workflow` None: only the state knows it, because it could not be restored."""

    def __init__(self, registry: WorkflowRegistry, name: str, workflow: Workflow | None) -> None:
        self._registry, self._name, self._workflow = registry, name, workflow

    async def save(self, state: State) -> None:
        await state.remove_workflow(self._name)

    def apply(self) -> None:
        if self._workflow is not None:
            self._registry.remove(self._workflow)


class TakingWorkflowBack(UnregisteringWorkflow):
    """Its nodes could not be started."""

    at_end = True

    def is_news(self) -> bool:
        return False
