"""What clients are told whose requests are not taken, or wait too long."""

from __future__ import annotations

from msx_frontend.errors import DeadlineExceeded, PayloadTooLarge
from msx_frontend.job import DESCRIBE
from msx_frontend.queueing.job_queue import Place, Waiting


def refusal(model: str, version: str, job: Place, reason: str) -> str:
    """TorchServe's text, then the reason."""
    of_version = f" Version {version}" if job.version else ""
    kind = "describe" if job.kind == DESCRIBE else "inference"
    text = f'Model "{model}"{of_version} has no worker to serve {kind} request. '
    text += "Please use scale workers API to add workers."
    if kind == "inference":
        text += (
            " If this is a sequence inference, please check if it is closed, or expired;"
            " or exceeds maxSequenceJobQueueSize"
        )
    return f"{text} ({reason})" if reason else text


def too_large(model: str, size: int, limit: int) -> PayloadTooLarge:
    """It has more instances than may ever wait."""
    return PayloadTooLarge(
        f"The request has {size} instances, and at most {limit} of model {model} may wait "
        f"(maxEnqueuedInstances): send fewer at once, or raise maxEnqueuedInstances."
    )


def too_late(model: str, job: Waiting, where: str) -> DeadlineExceeded:
    limit = (job.deadline or 0) - job.enqueued
    return DeadlineExceeded(
        f"The request had {limit:.3g} s (clientTimeoutInMills, or its client's own deadline) and was still "
        f"{where} for model {model}."
    )
