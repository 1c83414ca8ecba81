"""The messages that each socket receives: the unions with which a FrameReader is made."""

from msx_protocol.heartbeat import Ping
from msx_protocol.load import Load, Loaded, LoadFailed, LoadProgress
from msx_protocol.plan import CallDone, PlanCall, PlanEnd, PlanMessage, PlanStep
from msx_protocol.replies import Broken, Chunk, Chunks, CompleteReplies, Dropped, Failed, Joined, Lent, Returned
from msx_protocol.requests import Cancel, Credit, Drain, Predict

ToWorker = Load | Predict | Drain
ToWorkerControl = Ping | Cancel | Credit
ToFrontend = (
    LoadProgress
    | Loaded
    | LoadFailed
    | CompleteReplies
    | Chunk
    | Chunks
    | Failed
    | Dropped
    | Joined
    | CallDone
    | Lent
    | Returned
    | Broken
)
Plan = PlanCall | PlanStep | PlanEnd | PlanMessage
