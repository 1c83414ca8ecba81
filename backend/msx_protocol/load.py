"""Loading a model: the first message to a worker, and its answers until the model is ready."""

from typing import Any

from msx_core import elements
from msx_core.framework_device import FrameworkDevice
from msx_core.servable_start import ServableStart
from msx_core.text_limits import DEFAULT_LIMITS, TextLimits
from msx_core.torch_devices import TorchDevices
from msx_protocol.message import WireMessage
from msx_protocol.metrics import MetricDeclaration
from msx_protocol.segments import SegmentUse


class Load(WireMessage, tag=1, kw_only=True):
    """The first message: what to load and who this rank is. Answered by LoadProgress*, then Loaded or LoadFailed.

    `model_dir` is absolute; so is `site_dir`, with packages that come before the interpreter's own.
    `max_response_size` is in bytes, of one Chunk.
    """

    model_name: str
    model_version: str
    model_dir: str
    handler: str
    manifest: dict[str, Any]
    config: dict[Any, Any]
    batch_size: int
    isolate_batch_errors: bool
    device_id: int | None
    rank: int
    local_rank: int
    world_size: int
    place: int = 0
    """Which of the version's workers it is, from 0."""
    input_ranks: int = 1
    """Rank of a parallel group below which ranks get the inputs; the others get empty requests."""
    cache_dir: str | None
    site_dir: str | None = None
    decode_input: bool
    limit_max_image_pixels: bool
    max_response_size: int
    stream_credit: int = 0
    """Bytes that the chunks of a reply may have before the first Credit for it; 0: any number."""
    stream_heartbeat: float = 0.0
    """Seconds after which the head of a stream that has not begun is sent; 0: with the first chunk only."""
    stream_early_head: bool = False
    """Send it early for streams of any type, and not only for server-sent events."""
    server_version: str
    service_envelope: str = ""
    """The envelope that wraps the handler (`body`, `json`, `kserve`, `kservev2`, …); "" for none."""
    model_metrics: list[MetricDeclaration] = []
    continuous: bool = False
    """Call the handler repeatedly with all open requests: `continuousBatching`."""
    log_calls: bool = False
    """Send the PredictionTime of each call, because each is logged, and not only the last one."""
    servable: ServableStart | None = None
    """The servable as a start script declares it."""
    max_value_size: int = 0
    """Bytes of one Chunk for the next stage, where that is more than `max_response_size`."""
    max_request_size: int = 6553500
    """Bytes of a request's body."""
    max_request_elements: int = elements.DEFAULT
    text_limits: TextLimits = DEFAULT_LIMITS
    """Limits of plain predictions of a language model; the APIs have checked theirs."""
    segments: SegmentUse | None = None
    """Shared memory of a stage for large values between stages; None: they travel in frames."""
    from_older_server: bool = False
    """The model was served before rows were compared at warm-up: where they differ it starts, with an ERROR."""
    framework_device: FrameworkDevice | None = None
    """MindSpore's name of the device; None where MindSpore computes on the CPU."""
    torch_devices: list[TorchDevices] = []
    """Kinds of devices that torch may compute on, with how many of each the worker has."""
    host_processes: int = 0
    """Processes of vLLM of all models that share this machine's processor; 0 where the worker has devices, and in a
    cluster."""


class LoadProgress(WireMessage, tag=20):
    phase: str


class Loaded(WireMessage, tag=21):
    """The model answers now. An async handler takes many requests at once, and so does a continuous one.

    `capabilities` is a `msx_core.generation.Capabilities`, empty for a handler that only predicts; `signature` a
    `msx_sdk.kserve.Signature`, empty for one that takes any tensors; `methods` are
    `msx_core.methods.MethodInfo` objects. `overlap`: preprocess and postprocess of other batches run beside
    `inference`; `sequential` is a sentence without its full stop that says why not.
    """

    is_async: bool
    seconds: float
    capabilities: dict[str, Any] = {}
    signature: dict[str, Any] = {}
    continuous: bool = False
    methods: list[dict[str, Any]] = []
    overlap: bool = False
    sequential: str = ""
    newest: int = 0
    """Number of the last request that a frontend before this one has sent; the next one has a higher number."""
    call: int = 0
    """Number of the last call of a parallel group that began before this: its reports are of no interest."""


class LoadFailed(WireMessage, tag=22):
    message: str
    traceback: str
    out_of_memory: bool
