"""Errors of workflows, in TorchServe's words.

ServiceError
├── WorkflowNotFound            no such workflow, or no such archive in the workflow store
├── InvalidWorkflow             its archive, its spec or its name
│   └── InvalidDagError         its graph
└── WorkflowNotRegistered       one of its nodes could not be
"""

from msx_core.service_errors import ServiceError


class WorkflowNotFound(ServiceError):
    status, type, grpc_code = 404, "WorkflowNotFoundException", "NOT_FOUND"


class InvalidWorkflow(ServiceError):
    status, type, grpc_code = 400, "InvalidWorkflowException", "INVALID_ARGUMENT"


class InvalidDagError(InvalidWorkflow):
    type = "InvalidDAGException"


class WorkflowNotRegistered(ServiceError):
    type = "WorkflowException"

    def __init__(self, name: str, failures: list[str]) -> None:
        super().__init__(f"Workflow {name} has failed to register. Failures: [{', '.join(failures)}]")
