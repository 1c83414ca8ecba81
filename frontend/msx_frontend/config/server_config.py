"""The server's configuration: TorchServe's config.properties, environment variables and flags.

Every key is described in docs/server-config.md.
"""

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from msx_core import elements
from msx_core.sequences import SequenceKeys
from msx_core.start_errors import StartError
from msx_core.text_limits import TextLimits
from msx_core.values import Count, Positive, Seconds, Switch, Text
from msx_net.listening.address import Address

__all__ = ["Address", "ModelDefaults", "NamedSnapshot", "ServerConfig", "ServerConfigError", "Snapshot"]

Port = Annotated[int, Meta(ge=0, le=65535, description="a port from 0 to 65535")]
Interval = Annotated[float, Meta(ge=0, le=1e9, description="a number of seconds, or 0 for never")]
UpToAnHour = Annotated[float, Meta(gt=0, le=3600, description="a number of seconds above 0, at most 3600")]
Days = Annotated[float, Meta(gt=0, le=3650, description="a number of days above 0, at most 3650")]
PathName = Annotated[Path, Meta(description="a path")]
Paths = Annotated[tuple[Path, ...], Meta(description="a comma-separated list of folders")]
Regex = Annotated[re.Pattern[str], Meta(description="a regular expression")]
Regexes = Annotated[tuple[re.Pattern[str], ...], Meta(description="a comma-separated list of regular expressions")]
Names = Annotated[tuple[str, ...], Meta(description="a comma-separated list")]
ReadyWhen = Annotated[Literal["all", "any"], Meta(description="all or any")]
Engine = Annotated[Literal["auto", "msx", "vllm"], Meta(description="one of auto, msx, vllm")]
MetricsMode = Annotated[Literal["log", "prometheus", "legacy"], Meta(description="one of log, prometheus, legacy")]
GrpcTransport = Annotated[Literal["own", "grpcio"], Meta(description="one of own, grpcio")]
UnknownKeys = Annotated[Literal["warn", "refuse"], Meta(description="one of warn, refuse")]
HeaderText = Annotated[str, Meta(max_length=1000, description="a text of at most 1000 characters")]
_ORIGIN = r"(\*|null|[A-Za-z][A-Za-z0-9+.-]*://[^\s,/]+)"
Origins = Annotated[
    str,
    Meta(
        max_length=1000,
        pattern=rf"^([^,]*|\s*{_ORIGIN}(\s*,\s*{_ORIGIN})+\s*)$",
        description="an origin (https://example.org or https://example.org:8443, without a path), "
        "a comma-separated list of origins, or *, in at most 1000 characters",
    ),
]
FileMode = Annotated[
    str,
    Meta(pattern=r"^0?6[0246]{2}$", description="a file mode from 0600 to 0666 in octal digits, such as 0640"),
]
_PORT = r":[0-9]{1,5}"
ClusterAddress = Annotated[
    str,
    Meta(
        pattern=rf"^(auto|(ray://)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]){_PORT})$",
        description="auto, host:port of Ray's head, or ray://host:port of its client server",
    ),
]
OtlpEndpoint = Annotated[
    str, Meta(pattern=r"^https?://[^\s/]+(/\S*)?$", max_length=1000, description="a URL such as http://127.0.0.1:4318")
]
HostName = Annotated[
    str,
    Meta(pattern=r"^([A-Za-z0-9._-]+|[0-9A-Fa-f:.]+)$", description="a host name or an IP address, without a port"),
]
HostNames = Annotated[
    tuple[Annotated[str, Meta(max_length=253, pattern=r"^(\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*)$")], ...],
    Meta(
        max_length=100,
        description="a comma-separated list of up to 100 host names without ports, such as msx.example.org or "
        "*.example.org; * for any",
    ),
]
CallbackHosts = Annotated[
    tuple[
        Annotated[
            str,
            Meta(
                max_length=253,
                pattern=r"^(\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(/[0-9]{1,2})?|[0-9A-Fa-f:.]+(/[0-9]{1,3})?)$",
            ),
        ],
        ...,
    ],
    Meta(
        max_length=100,
        description="a comma-separated list of up to 100 host names, addresses and networks without ports, such as "
        "hooks.example.org, *.example.org or 10.0.0.0/8; * for any that is public",
    ),
]
AcceleratorName = Annotated[
    str,
    Meta(pattern=r"^[a-z0-9_-]{1,30}$", description="auto, none, or the name of a kind of devices in lower case"),
]
"""Which kinds there are is known in `devices/`, which also refuses another name."""
Envelope = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$",
        description="body, json, kserve, kservev2, or the name of a module with an envelope",
    ),
]


class ServerConfigError(StartError, ValueError):
    """A wrong server configuration: the message names the key, the value and the expected value."""


class ModelDefaults(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The settings of one version in the keys `models` and `model_snapshot`; None: not given."""

    default_version: bool = False
    mar_name: str | None = None
    min_workers: Count | None = None
    max_workers: Count | None = None
    batch_size: Positive | None = None
    max_batch_delay: Count | None = None
    response_timeout: Positive | None = None
    startup_timeout: Positive | None = None


Models = dict[str, dict[str, ModelDefaults]]


class Snapshot(msgspec.Struct, frozen=True):
    """TorchServe's `model_snapshot`: the models of a server, by name and version.

    `last_known`: it is the newest one (`model_snapshot=last`). The server's own state, if it has one, is newer.
    """

    models: Models
    last_known: bool = False


class NamedSnapshot(msgspec.Struct, frozen=True):
    """`model_snapshot` where it is the name of a snapshot, or `last`: the start reads that.

    `load_models`: those of the same file, which are loaded where `last` finds no snapshot.
    """

    name: str
    load_models: Names = ()


class ServerConfig(TextLimits, frozen=True, kw_only=True):
    """The members of `TextLimits` are keys, too. Timeouts in s, sizes in bytes, `max_worker_memory` in MiB, ages in ms,
    `token_expiration_min` in minutes."""

    inference_address: Address = Address("http", "127.0.0.1", 8080)
    management_address: Address = Address("http", "127.0.0.1", 8081)
    metrics_address: Address = Address("http", "127.0.0.1", 8082)
    grpc_inference_address: Text = "127.0.0.1"
    grpc_inference_port: Port = 7070
    grpc_management_address: Text = "127.0.0.1"
    grpc_management_port: Port = 7071
    grpc_inference_max_connection_age_ms: Positive | None = None
    grpc_inference_max_connection_age_grace_ms: Positive | None = None
    grpc_management_max_connection_age_ms: Positive | None = None
    grpc_management_max_connection_age_grace_ms: Positive | None = None
    enable_grpc_ssl: Switch = False
    private_key_file: PathName | None = None
    certificate_file: PathName | None = None
    keystore: PathName | None = None
    keystore_pass: Text = "changeit"  # noqa: S105  # TorchServe's default, known to all
    keystore_type: Text = "PKCS12"
    client_ca: PathName | None = None
    inference_client_ca: PathName | None = None
    management_client_ca: PathName | None = None
    metrics_client_ca: PathName | None = None
    grpc_inference_client_ca: PathName | None = None
    grpc_management_client_ca: PathName | None = None

    max_connections: Positive | None = None
    tls_handshake_timeout: Seconds = 10.0
    max_request_head_size: Annotated[
        int, Meta(ge=1 << 10, le=1 << 24, description="an integer from 1024 to 16777216")
    ] = 1 << 16
    max_request_headers: Positive = 200
    request_head_timeout: Seconds = 20.0
    request_body_grace: Seconds = 10.0
    min_request_body_rate: Count = 240
    max_refused_body_size: Count = 64 << 20
    keep_alive_timeout: Seconds = 75.0
    http2_ping_interval: Seconds = 60.0
    http2_ping_timeout: Seconds = 20.0
    stream_buffer_size: Positive = 1 << 20
    stream_heartbeat: Interval = 15.0
    stream_early_head: Switch = False

    model_store: PathName = Path(".")
    workflow_store: PathName | None = None
    state_dir: PathName | None = None
    cache_dir: PathName | None = None
    load_models: Names = ()
    servables: Paths = ()
    huggingface: Names = ()
    llm_serving: PathName | None = None
    models: Models = {}
    model_snapshot: Snapshot | NamedSnapshot | None = None
    snapshots: Switch = True
    snapshot_serializer: Text | None = None
    plugins_path: Paths = ()
    default_workers_per_model: Count = 0
    default_service_handler: Text | None = None
    engine: Engine = "auto"
    service_envelope: Envelope | None = None
    install_py_dep_per_model: Switch = False
    install_py_dep_timeout: Positive = 1800
    python: PathName | None = None
    pythons: Names = ()
    allowed_urls: Regexes = (
        re.compile("file://.*"),
        re.compile("http(s)?://.*"),
        re.compile("(hf|modelscope|s3|obs)://.*"),
    )
    use_env_allowed_urls: Switch = False
    require_signature: Switch = False
    signature_keys: PathName | None = None
    max_download_size: Positive = 100 << 30
    download_timeout: Positive = 3600
    hub_dir: PathName | None = None
    hub_cache_size: Count = 100 << 30
    hub_offline: Switch = False
    enable_model_api: Switch = False

    default_llm: Text | None = None
    adapters_path: PathName | None = None
    default_response_timeout: Positive = 120
    default_startup_timeout: Positive = 120
    unregister_model_timeout: Positive = 120
    app_startup_timeout: UpToAnHour = 60.0
    app_shutdown_timeout: UpToAnHour = 10.0
    drain_timeout: Seconds = 30.0
    supervisor: Switch = True
    keep_groups: UpToAnHour = 60.0
    upgrade_timeout: UpToAnHour = 600.0
    readyz_strict: Switch = False
    ready_when: ReadyWhen = "all"
    job_queue_size: Positive = 100
    max_enqueued_requests: Positive = 10_000
    max_queued_bytes: Positive | None = None
    max_request_size: Positive = 6553500
    max_response_size: Positive = 6553500
    max_request_elements: Positive = elements.DEFAULT
    accelerator: AcceleratorName = "auto"
    number_of_npu: Count | None = None
    simulate_devices: Annotated[int, Meta(ge=0, le=1024, description="an integer from 0 to 1024")] = 0
    exclusive_group_devices: Switch = False
    bind_cores: Switch = False
    device_check_interval: Interval = 15.0
    max_worker_processes: Positive | None = None
    max_worker_memory: Positive | None = None
    parallel_starts: Positive | None = None
    worker_user: Text | None = None
    worker_groups: Names = ()
    worker_limits: Names = ()
    worker_no_new_privileges: Switch | None = None

    cluster_address: ClusterAddress | None = None
    cluster_agent_address: HostName | None = None
    cluster_start_timeout: Seconds = 60.0

    grpc_transport: GrpcTransport = "own"
    decode_input_request: Switch = True
    decompress_requests: Switch | None = None
    compress_replies: Switch = False
    limit_max_image_pixels: Switch = True
    allowed_image_hosts: HostNames = ()
    max_images: Positive = 16
    max_image_size: Positive = 6553500
    image_fetch_timeout: UpToAnHour = 10.0
    jobs: Switch = False
    jobs_at_once: Positive = 16
    jobs_days: Days = 1.0
    jobs_size: Positive = 1 << 30
    max_jobs: Positive = 100_000
    callback_hosts: CallbackHosts = ()
    callback_secrets: PathName | None = None
    callback_timeout: UpToAnHour = 10.0
    max_callbacks: Positive = 10_000
    batch_share: Annotated[float, Meta(gt=0, le=1, description="a number above 0, at most 1")] = 0.5
    max_batch_lines: Positive = 50_000
    max_batches: Positive = 1000
    files_days: Days = 30.0
    files_size: Positive = 1 << 30
    max_files: Positive = 1000
    max_file_size: Positive = 200 << 20
    responses_store: Switch = False
    responses_store_days: Days = 30.0
    responses_store_size: Positive = 1 << 30
    blacklist_env_vars: Regex | None = None
    worker_credentials: Switch = False
    ts_header_key_sequence_id: Text = "ts_request_sequence_id"
    ts_header_key_sequence_start: Text = "ts_request_sequence_start"
    ts_header_key_sequence_end: Text = "ts_request_sequence_end"
    ts_open_inference_protocol: Switch = False

    disable_token_authorization: Switch = False
    token_expiration_min: Annotated[float, Meta(ge=0, le=1e9, description="a number of minutes, or 0 for never")] = 60.0
    keep_tokens: Switch = False
    api_keys_file: PathName | None = None
    allowed_hosts: HostNames = ()
    cors_allowed_origin: Origins | None = None
    cors_allowed_methods: HeaderText | None = None
    cors_allowed_headers: HeaderText | None = None

    enable_metrics_api: Switch = True
    metrics_mode: MetricsMode | None = None
    metrics_config: PathName | None = None
    model_metrics_auto_detect: Switch | None = None
    disable_system_metrics: Switch = False
    system_metrics_cmd: Text | None = None
    metric_time_interval: Positive = 60
    log_config: PathName | None = None
    log_file_mode: FileMode = "0640"
    console: Switch | None = None
    otlp_endpoint: OtlpEndpoint | None = None
    trace_sample_ratio: Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")] | None = None
    enable_console: Switch = True
    console_upload: Switch = False
    enable_envvars_config: Switch = False
    unknown_keys: UnknownKeys = "warn"

    def defaults_of(self, name: str, version: str) -> ModelDefaults:
        """The settings of the version in the key `models`."""
        return self.models.get(name, {}).get(version) or ModelDefaults()

    @property
    def merged(self) -> bool:
        """One listener serves inference and management. Port 0 gives each a free one of its own."""
        return self.inference_address == self.management_address and self.inference_address.port != 0

    @property
    def text_limits(self) -> TextLimits:
        """The limits of requests to language models alone."""
        return TextLimits(**{name: getattr(self, name) for name in TextLimits.__struct_fields__})

    @property
    def sequence_keys(self) -> SequenceKeys:
        """The headers of sequences, as clients, handlers and the server name them."""
        return SequenceKeys(
            id=self.ts_header_key_sequence_id,
            start=self.ts_header_key_sequence_start,
            end=self.ts_header_key_sequence_end,
        )
