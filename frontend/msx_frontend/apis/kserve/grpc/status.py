"""KServe's gRPC status of an error."""

from msx_core.service_errors import HandlerFailed, Overloaded, ServiceError
from msx_core.statuses import PREDICTION_FAILED
from msx_net.grpc.codes import Code
from msx_net.grpc.status import standard_code


def open_inference_code(error: ServiceError) -> Code:
    """KServe's clients repeat what is UNAVAILABLE, and so add to an overload; what a handler raised fails again."""
    if isinstance(error, Overloaded):
        return Code.RESOURCE_EXHAUSTED
    if isinstance(error, HandlerFailed) and error.status == PREDICTION_FAILED:
        return Code.INTERNAL
    return standard_code(error)
