"""The errors for requests to a model version that are not taken, or wait too long."""

from msx_core.service_errors import DeadlineExceeded, Overloaded, PayloadTooLarge, ServiceUnavailable
from msx_frontend.job import DESCRIBE, Job
from msx_frontend.queueing.instances import InstanceRequest
from msx_frontend.queueing.job_queue import Place, Waiting


class Refusals:
    def __init__(self, model: str, version: str) -> None:
        self._model, self._version = model, version

    def unavailable(self, job: Place, reason: str) -> ServiceUnavailable:
        return ServiceUnavailable(self._text(job, reason))

    def overloaded(self, job: Place, reason: str, wait: float) -> Overloaded:
        """`wait`: seconds after which to ask again."""
        plain = f"{reason[0].upper()}{reason[1:]} (model {self._model}). Ask again later, or add workers."
        return Overloaded(self._text(job, reason), plain=plain, wait=wait)

    def _text(self, job: Place, reason: str) -> str:
        """TorchServe's text, then the reason."""
        of_version = f" Version {self._version}" if job.version else ""
        kind = "describe" if job.kind == DESCRIBE else "inference"
        text = f'Model "{self._model}"{of_version} has no worker to serve {kind} request. '
        text += "Please use scale workers API to add workers."
        if kind == "inference":
            text += (
                " If this is a sequence inference, please check if it is closed, or expired;"
                " or exceeds maxSequenceJobQueueSize"
            )
        return f"{text} ({reason})" if reason else text

    def expire(self, request: Waiting) -> None:
        """Cancel a request whose deadline has passed."""
        limit = (request.deadline or 0) - request.enqueued
        where = "waiting in the queue" if _waits(request) else "running"
        request.cancel(
            DeadlineExceeded(
                f"The request had {limit:.3g} s (clientTimeoutInMills, or its client's own deadline) and was still "
                f"{where} for model {self._model}."
            )
        )


def _waits(request: Job | InstanceRequest) -> bool:
    return request.queue is not None if isinstance(request, Job) else request.waiting == request.size


def too_large(model: str, size: int, limit: int) -> PayloadTooLarge:
    """It has more instances than may ever wait."""
    return PayloadTooLarge(
        f"The request has {size} instances, and at most {limit} of model {model} may wait "
        f"(maxEnqueuedInstances): send fewer at once, or raise maxEnqueuedInstances."
    )
