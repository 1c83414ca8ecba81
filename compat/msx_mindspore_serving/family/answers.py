"""The way from what workers say of the instances of a request to outputs and errors."""

from collections.abc import Mapping, Sequence
from typing import Any

from msx_core.packed import InvalidPacked, unpack_tensors
from msx_core.service_errors import ServiceError
from msx_frontend.plugins.families import InstanceAnswer, InstanceReply
from msx_mindspore_serving.family.errors import FAILED, SYSTEM_ERROR, ErrorText, Spec, error_text

Outputs = Mapping[str, Any]


def outputs_of(answer: InstanceAnswer, spec: Spec) -> Outputs | ErrorText:
    if isinstance(answer, ServiceError):
        return error_text(answer, spec)
    if answer.status >= 400:
        return ErrorText(FAILED, answer.body.decode("utf-8", "replace"))
    try:
        value = unpack_tensors(answer.body)
    except InvalidPacked as error:
        return ErrorText(SYSTEM_ERROR, f"The worker of servable {spec.servable} answered what cannot be read: {error}")
    if isinstance(value, dict):
        return value
    return ErrorText(
        SYSTEM_ERROR,
        f"Method {spec.method} of servable {spec.servable} must return a dict of its outputs, but returned "
        f"{type(value).__name__}",
    )


def reply_size(answers: Sequence[InstanceAnswer]) -> int:
    """Bytes of the reply."""
    return sum(len(one.body) for one in answers if isinstance(one, InstanceReply))
