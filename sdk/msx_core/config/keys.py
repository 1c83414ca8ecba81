"""The keys of a model-config.yaml as typed structs. Every key is described in docs/model-config.md."""

import msgspec

from msx_core.config.sections import (
    AdapterPlaces,
    AdapterRank,
    Aliases,
    BodyKind,
    Buckets,
    Captures,
    DecMode,
    DeviceType,
    DraftMethod,
    DraftTokens,
    GenerationConfig,
    Ids,
    ImageRange,
    Inputs,
    InterpreterName,
    Isa,
    JsonBodies,
    Mode,
    NgramSize,
    ParallelType,
    PerDevice,
    PlacementRule,
    Policy,
    ProcessCount,
    ReadyAfter,
    ReasoningParser,
    Replies,
    ReplyKind,
    Requests,
    Section,
    ToolParser,
    Variables,
)
from msx_core.values import Amount, Count, Delay, Fraction, Positive, Seconds, Switch, Text


class LauncherOptions(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """`msrun:`, or `torchrun:` in a config for TorchServe. MSX starts the ranks itself."""

    nnodes: Positive = 1
    nproc_per_node: Positive | None = None
    rdzv_backend: Text = "c10d"
    rdzv_endpoint: Text | None = None
    rdzv_conf: Text | None = None
    monitor_interval: Count = 5
    node_rank: Count = 0
    omp_number_threads: Positive = msgspec.field(default=1, name="OMP_NUMBER_THREADS")


class ParallelSplit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`parallel:`, how the ranks of a group divide the model."""

    pipeline_stages: Positive | None = None
    tensor_parallel: Positive | None = None
    expert_parallel: Switch = False
    """Each rank of a tensor-parallel group has some experts whole, in place of a part of each."""
    nodes: Positive | None = None


class MindSporeOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`mindspore:`, how a worker sets up MindSpore; None leaves the choice to the handler."""

    isa: Isa | None = None
    threads: Positive | None = None
    compile_cache: Switch | Text | None = None
    mode: Mode | None = None


class SpeculativeOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`speculative:`, tokens that a text is likely to go on with are computed along with its last one."""

    method: DraftMethod = "ngram"
    tokens: DraftTokens = 7
    ngram: NgramSize = 3
    model: Text = "draft"


class AdapterOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`adapters:`, low-rank changes of the weights that requests choose by name."""

    folder: str = "adapters"
    max_loras: AdapterPlaces = 4
    max_rank: AdapterRank = 64
    loadable: Switch = False


class ServableOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`servable:`, for servables of MindSpore Serving."""

    function_processes: ProcessCount = 0
    dec_key_file: Text | None = None
    dec_mode: DecMode = "AES-GCM"


class AutoscalingOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`autoscaling:`, how many workers there are between `minWorkers` and `maxWorkers`.

    `target_queue_time` in ms, `target_in_flight` in requests for each worker: one of them is given, or neither. The
    delays and `idle_time` in s.
    """

    target_queue_time: Positive | None = None
    target_in_flight: Amount | None = None
    up_delay: Delay = 1.0
    down_delay: Delay = 60.0
    idle_time: Delay = 300.0

    @property
    def queue_seconds(self) -> float:
        """The target of the queue time."""
        return (self.target_queue_time or QUEUE_TIME) / 1000


class RoutingOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`routing:`, which of several workers of a language model gets a request."""

    prefix: Switch = True
    sessions: Switch = True
    max_imbalance: Count = 4


class ExpectedReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`expected:`, what the handler answers to `example:`; a list of replies where that is a list of requests.

    `tolerance`: how far a number may be off, as a part of the largest number of its output.
    """

    outputs: Replies = None
    tolerance: Fraction = 1e-3


QUEUE_TIME = 200
"""ms, without a target."""


class ModelKeys(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Units are TorchServe's: `max_batch_delay` ms, `response_timeout` and `startup_timeout` s,
    `client_timeout_in_mills` ms, `max_retry_timeout_in_sec` s; `cache_memory` and `max_worker_memory` MiB.
    """

    min_workers: Count | None = None
    max_workers: Count | None = None
    autoscaling: Switch | AutoscalingOptions = False
    max_worker_memory: Positive | None = None
    batch_size: Positive = 1
    max_batch_delay: Count = 100
    response_timeout: Positive = 120
    startup_timeout: Positive = 120
    max_retry_timeout_in_sec: Count = 300
    client_timeout_in_mills: Count = 0
    job_queue_size: Positive = 100
    max_enqueued_instances: Positive = 10_000
    split_instances: Switch = False
    use_job_ticket: Switch = False
    batching_policy: Policy = "dynamic"
    isolate_batch_errors: Switch = True
    overlap: Switch | None = None
    continuous_batching: Switch = False
    stream_batching: Switch = False
    async_communication: Switch = False
    max_concurrent: Positive = 64
    sequence_batching: Switch = False
    sequence_max_idle_msec: Count = msgspec.field(default=0, name="sequenceMaxIdleMSec")
    sequence_timeout_msec: Count = msgspec.field(default=0, name="sequenceTimeoutMSec")
    max_num_sequence: Positive = 1
    max_sequence_job_queue_size: Positive = 1
    device_type: DeviceType | None = None
    device_ids: Ids | None = None
    share_devices: Switch = False
    exclusive_devices: Switch = False
    workers_per_device: PerDevice | None = None
    bind_cores: Switch = False
    parallel_type: ParallelType = ""
    parallel_level: Count = 0
    torchrun: LauncherOptions | None = None
    msrun: LauncherOptions | None = None
    parallel: ParallelSplit = ParallelSplit()
    placement: PlacementRule = "pack"
    rank_skew_timeout: Seconds = 10.0
    mindspore: MindSporeOptions = MindSporeOptions()
    servable: ServableOptions = ServableOptions()
    warmup: Switch | Requests = True
    example: Inputs = None
    expected: ExpectedReply | None = None
    batch_check: Switch = True
    batch_tolerance: Fraction | None = None
    json_bodies: JsonBodies | None = None
    bodies: BodyKind | None = None
    replies: ReplyKind | None = None
    compression: Switch = False
    image_range: ImageRange | None = None
    use_venv: Switch = False
    python: InterpreterName | None = None
    max_batch_prefill_tokens: Positive | None = None
    max_batch_total_tokens: Positive | None = None
    max_input_tokens: Positive | None = None
    max_total_tokens: Positive | None = None
    block_size: Positive = 16
    cache_memory: Positive | None = None
    cache_fraction: Fraction | None = None
    slot_buckets: Buckets | None = None
    context_buckets: Buckets | None = None
    prefill_buckets: Buckets | None = None
    device_sampling: Switch = True
    ready_after: ReadyAfter = "all"
    capture_buckets: Captures | None = None
    speculative: SpeculativeOptions | None = None
    adapters: AdapterOptions | None = None
    routing: Switch | RoutingOptions = True
    generation_config: GenerationConfig = "auto"
    tool_parser: ToolParser | None = None
    reasoning_parser: ReasoningParser | None = None
    request_chat_template: Switch = False
    env: Variables = None
    aliases: Aliases = ()
    stages: Section = None
    routes: Section = None
    vllm: Section = None
    edge_capacity: Positive | None = None
    edge_memory: Positive = 256
    shared_memory: Count = 256
    shared_segments: Positive = 32

    @property
    def several_examples(self) -> bool:
        """`example:` is a list of requests; with `bodies:` it may be one body that is a list."""
        return isinstance(self.example, list) and (self.bodies is None or self.batch_size > 1)

    @property
    def scales_by_load(self) -> AutoscalingOptions | None:
        """None where workers do not follow the load."""
        given = self.autoscaling
        return given if isinstance(given, AutoscalingOptions) else AutoscalingOptions() if given else None

    @property
    def routed(self) -> RoutingOptions | None:
        """None where the least busy worker gets each request."""
        given = self.routing
        return given if isinstance(given, RoutingOptions) else RoutingOptions() if given else None

    @property
    def splits_instances(self) -> bool:
        """Requests of a sequence stay whole."""
        return self.split_instances and not self.stateful

    @property
    def stateful(self) -> bool:
        return self.sequence_batching and self.sequence_max_idle_msec > 0
