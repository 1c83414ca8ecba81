"""Requests over gRPC: the status is OK, and errors stand in the reply."""

import time
from collections.abc import Sequence
from typing import Any

from msx_core.replies.sink import Sink
from msx_core.service_errors import DeadlineExceeded, ServiceError
from msx_frontend.plugins.families import InstanceAnswer, InstanceRequest
from msx_mindspore_serving.family.answers import Outputs, outputs_of
from msx_mindspore_serving.family.calls import ServingCall
from msx_mindspore_serving.family.errors import ErrorText, ServingError, Spec, error_text, same_for_all
from msx_mindspore_serving.family.grpc.tensors import fill_tensor, read_tensor
from msx_mindspore_serving.family.servables import Servables
from msx_mindspore_serving.family.values import shown
from msx_net.grpc.messages import message_class

_Reply = message_class("mindspore.serving.proto.PredictReply")


class GrpcCall(ServingCall[Any]):
    """`deadline` is the client's, a `time.monotonic()` instant."""

    __slots__ = ("_asked", "_deadline", "_spec")

    def __init__(self, servables: Servables, id: str, sink: Sink, asked: Any, deadline: float | None) -> None:
        """`asked` is the ServableSpec of the request."""
        super().__init__(servables, id, sink)
        self._asked, self._deadline = asked, deadline
        self._spec = Spec(asked.name, asked.method_name, asked.version_number)

    def make(self, message: Any) -> InstanceRequest:
        instances = message.instances
        items = [one.items for one in instances]
        request = self.servables.request(self.id, self._spec, items, read_tensor, self, deadline=self._deadline)
        for instance in instances:
            if instance.output_buffers:
                self._refuse_buffers(instance.output_buffers)
        return request

    def answered(self, answers: Sequence[InstanceAnswer]) -> None:
        """A client whose time is up is told so by gRPC's own status."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            late = next((one for one in answers if isinstance(one, DeadlineExceeded)), None)
            if late is not None:
                self.sink.fail(late)
                return
        super().answered(answers)

    def reply(self, answers: Sequence[InstanceAnswer]) -> bytes:
        found = [outputs_of(one, self._spec) for one in answers]
        reply = _Reply(servable_spec=self._asked)
        errors = [_filled(reply.instances.add(), one) for one in found]
        if (error := same_for_all(errors)) is not None:
            return self._failed(error)
        if any(errors):
            for one in errors:
                code, text = one or (0, "")
                reply.error_msg.add(error_code=code, error_msg=text.encode())
        return _bytes(reply)

    def refusal(self, error: ServiceError) -> bytes:
        return self._failed(error_text(error, self._spec))

    def send(self, data: bytes) -> None:
        self.sink.answer(200, "", [], data)

    def _failed(self, error: ErrorText) -> bytes:
        reply = _Reply(servable_spec=self._asked)
        reply.error_msg.add(error_code=error.code, error_msg=error.text.encode())
        return _bytes(reply)

    def _refuse_buffers(self, buffers: Any) -> None:
        """Raises ServingError."""
        spec, known = self._spec, self.servables.outputs(self._spec)
        where = f"servable {spec.servable}, method {spec.method}"
        for name in buffers:
            if known and name not in known:
                raise ServingError(
                    f"The name {name} of the output buffers cannot be found in the output names {shown(known)} of the "
                    f"method, {where}"
                )
        raise ServingError(
            f"Output buffers in shared memory are not served here: read the outputs of the reply, {where}"
        )


def _filled(instance: Any, outputs: Outputs | ErrorText) -> ErrorText | None:
    """Its error; then it stays empty."""
    if isinstance(outputs, ErrorText):
        return outputs
    try:
        for name, value in outputs.items():
            fill_tensor(instance.items[str(name)], value)
    except ServingError as error:
        instance.Clear()
        return ErrorText(error.code, error.message)
    return None


def _bytes(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data
