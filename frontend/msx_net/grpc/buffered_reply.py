"""The reply of a call whose client takes it piece by piece."""

from msx_core.replies.reply_buffer import ReplyBuffer
from msx_net.grpc.admission import Admitted


def reply_to(call: Admitted) -> ReplyBuffer:
    """The sink of a job, which knows what the call's metadata say of it."""
    return ReplyBuffer(priority=call.priority, trace=call.trace, session=call.session)
