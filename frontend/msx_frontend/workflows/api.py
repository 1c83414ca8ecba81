"""TorchServe's calls on workflows, with parameters by name, answered in TorchServe's words."""

from typing import Any

from msx_core.service_errors import BadRequest
from msx_frontend.management_errors import ModelApiDisabled
from msx_frontend.models.parameters import Values, page, text
from msx_frontend.workflows.management import WorkflowManagement


class WorkflowApi:
    """`enabled` is the key enable_model_api. Every method raises ServiceError."""

    def __init__(self, management: WorkflowManagement, *, enabled: bool) -> None:
        self._management, self._enabled = management, enabled

    async def register(self, values: Values) -> str:
        """A sentence for the operator. TorchServe, too, waits for the workers."""
        self._check_enabled()
        if "url" not in values:
            raise BadRequest("Parameter url is required.")
        workflow = await self._management.register(str(values["url"]), text(values, "workflow_name"))
        return f"Workflow {workflow.name} has been registered and scaled successfully."

    async def unregister(self, name: str) -> str:
        self._check_enabled()
        await self._management.unregister(name)
        return f'Workflow "{name}" unregistered'

    def workflows(self, values: Values) -> dict[str, Any]:
        registry = self._management.registry
        following, shown = page(registry.names(), values)
        entries = [{"workflowName": name, "workflowUrl": registry.find(name).archive.shown} for name in shown]
        return {**following, "workflows": entries}

    def describe(self, name: str) -> list[dict[str, Any]]:
        """The numbers are the defaults of the section `models`."""
        workflow = self._management.registry.find(name)
        defaults = workflow.spec.defaults
        return [
            {
                "workflowName": workflow.name,
                "workflowUrl": workflow.archive.shown,
                "minWorkers": defaults.min_workers,
                "maxWorkers": defaults.most_workers,
                "batchSize": defaults.batch_size or 1,
                "maxBatchDelay": 50 if defaults.max_batch_delay is None else defaults.max_batch_delay,
                "workflowDag": str(workflow.spec.dag),
            }
        ]

    def _check_enabled(self) -> None:
        if not self._enabled:
            raise ModelApiDisabled
