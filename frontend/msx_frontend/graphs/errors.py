"""Errors of requests to a graph.

ServiceError
└── NodeFailed      one of its nodes ended the request, with that node's own status
"""

from msx_core.service_errors import ServiceError


class NodeFailed(ServiceError):
    """The message begins with the node's name, which is also in a header. TorchServe sends the name only."""

    def __init__(self, node: str, cause: ServiceError, header: str = "x-workflow-node", *, own: bool = False) -> None:
        """`own`: its type is one of MSX, because TorchServe has no such graphs."""
        super().__init__(f"Error executing {node}: {cause.message}")
        self.status = cause.status
        self.type = cause.own_type if own else cause.type
        self._torchserve_type = cause.torchserve_type
        self.grpc_code = cause.grpc_code
        self.headers = (*cause.headers, (header, node))

    @property
    def torchserve_type(self) -> str:
        return self._torchserve_type
