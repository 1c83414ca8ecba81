"""Models and workflows under one name, as gRPC's `Predictions` asks for them. TorchServe has no gRPC for workflows."""

from msx_core.service_errors import BadRequest, ModelNotFound
from msx_frontend.job import Job
from msx_frontend.models.registry import Registry
from msx_frontend.workflows.workflow import WorkflowRegistry


class ModelsAndWorkflows:
    """A model comes before a workflow of the same name."""

    def __init__(self, models: Registry, workflows: WorkflowRegistry) -> None:
        self._models, self._workflows = models, workflows

    def submit(self, job: Job) -> None:
        """Raises ServiceError."""
        try:
            self._models.submit(job)
        except ModelNotFound:
            if job.model_name not in self._workflows.names():
                raise
            if job.version is not None:
                raise BadRequest(f"Workflow {job.model_name} has no versions: leave model_version out.") from None
            self._workflows.submit(job)
