"""One inference: what REST and gRPC both do with the job."""

from typing import NamedTuple

from msx_core.kserve.message import split
from msx_core.replies.reply_buffer import ReplyBuffer
from msx_core.service_errors import HandlerFailed
from msx_frontend.apis.kserve.errors import ManyReplies, error_text


class InferenceMessage(NamedTuple):
    """JSON and the tensors' bytes behind it, as REST sends them; `json_size` bytes of it are JSON."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    json_size: int
    phrase: str = ""


async def only_message(reply: ReplyBuffer, model: str) -> InferenceMessage:
    """Raises the job's ServiceError, HandlerFailed for a status of 400 and above, ManyReplies for a stream."""
    head = await reply.head()
    messages: list[bytes] = []
    async for message in reply:
        if messages and head.status < 400:
            raise ManyReplies(model)
        messages.append(message)
    check(head.status, messages)
    return InferenceMessage(head.status, head.headers, *opened(messages[0] if messages else b"", model), head.phrase)


def check(status: int, messages: list[bytes]) -> None:
    """Raises HandlerFailed for a status of 400 and above: then the reply is the handler's own, and not a message."""
    if status >= 400:
        raise HandlerFailed(status, error_text(b"".join(messages)) or f"The handler answered with status {status}.")


def renamed(message: bytes, json_size: int, own: str, asked: str) -> tuple[bytes, int]:
    """The message, which begins with the model's own name, with the alias that was asked for in its place."""
    head, wanted = (b'{"model_name":"%b"' % name.encode() for name in (own, asked))
    if not message.startswith(head):
        return message, json_size
    return wanted + message[len(head) :], json_size + len(wanted) - len(head)


def opened(message: bytes, model: str) -> tuple[bytes, int]:
    """Raises HandlerFailed for what is not a message."""
    if not message:
        raise HandlerFailed(500, f"The handler of model {model} answered nothing.")
    try:
        return split(bytes(message))  # a large one is a bytearray, which Protocol Buffers refuse
    except ValueError as error:
        raise HandlerFailed(500, f"The worker of model {model} broke off: {error}.") from None
