"""`vllm:`, the arguments of vLLM's engine, as far as they are known without it: the worker reads them by its parser.

Names may be written with dashes or underscores, as on vLLM's command line.
"""

from collections.abc import Collection, Mapping
from typing import Any

from msx_core.config.vllm_code import code_in
from msx_core.values import ConfigError, near_miss, show

_FILES = "the server fetches the model's files, and its folder is the model"
_CODE = "it would run code that the files of a model name"
_PROCESSES = "the server starts the processes of a model, on the devices that it gives them"
_LOGS = "the server writes the log, and reads the metrics"
_MEDIA = "the server fetches all media"
_PORTS = "the server says where workers listen"

DECIDED = {
    **dict.fromkeys(
        ("model", "model_weights", "revision", "code_revision", "tokenizer_revision", "download_dir", "hf_token"),
        _FILES,
    ),
    "served_model_name": "clients know a model by the name under which it is registered",
    "skip_tokenizer_init": "the server's routes need the tokenizer",
    "generation_config": "generationConfig of model-config.yaml says it",
    **dict.fromkeys(
        (
            "trust_remote_code",
            "reasoning_parser_plugin",
            "io_processor_plugin",
            "worker_cls",
            "worker_extension_cls",
            "scheduler_cls",
            "ec_manager_config",
            "logits_processors",
            "model_class_overrides",
        ),
        _CODE,
    ),
    **dict.fromkeys(
        (
            "device_ids",
            "distributed_executor_backend",
            "nnodes",
            "node_rank",
            "data_parallel_size",
            "data_parallel_size_local",
            "data_parallel_rank",
            "data_parallel_start_rank",
            "data_parallel_backend",
            "data_parallel_hybrid_lb",
            "data_parallel_external_lb",
            "data_parallel_multi_port_external_lb",
            "enable_elastic_ep",
            "numa_bind",
            "numa_bind_nodes",
            "numa_bind_cpus",
            "shutdown_timeout",
            "api_server_count",
        ),
        _PROCESSES,
    ),
    **dict.fromkeys(
        (
            "host",
            "port",
            "uds",
            "master_addr",
            "master_port",
            "data_parallel_address",
            "data_parallel_rpc_port",
            "kv_events_config",
            "kv_transfer_config",
            "ec_transfer_config",
            "weight_transfer_config",
        ),
        _PORTS,
    ),
    **dict.fromkeys(
        (
            "disable_log_stats",
            "enable_log_requests",
            "aggregate_engine_logging",
            "logging_config",
            "log_level",
            "log_config_file",
            "otlp_traces_endpoint",
            "collect_detailed_traces",
            "profiler_config",
            "custom_histogram_buckets",
        ),
        _LOGS,
    ),
    **dict.fromkeys(("allowed_local_media_path", "allowed_media_domains"), _MEDIA),
}
"""Arguments that a model cannot give, with the reason."""


def vllm_arguments(section: Any) -> dict[str, Any]:
    """The section's members by their names with underscores. Raises ConfigError, which names a member that the server
    decides."""
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        raise ConfigError(f"vllm: {show(section)} is not a mapping of arguments of vLLM's engine to their values")
    arguments: dict[str, Any] = {}
    for written, value in section.items():
        name = _name(written)
        if name in arguments:
            raise ConfigError(f"vllm.{written}: is given twice, with dashes and with underscores: give it once")
        check_code(name, value)
        arguments[name] = value
    return {name: value for name, value in arguments.items() if value is not None}


def check_code(name: str, value: Any) -> None:
    """Raises ConfigError for a member that names code."""
    if found := code_in(name, value):
        raise ConfigError(f"vllm.{found}: a model cannot give it: {_CODE}")


def check_names(section: Any, known: Collection[str]) -> None:
    """Check a section by the names of arguments of a vLLM. Raises ConfigError for one that it does not have."""
    for name in vllm_arguments(section):
        if name.partition(".")[0] not in known:
            raise ConfigError(unknown_argument(name, known))


def unknown_argument(written: str, known: Collection[str]) -> str:
    """The error for a name that is not among those of vLLM."""
    meant = near_miss(written.partition(".")[0], known)
    hint = f"did you mean {meant}?" if meant else "see the arguments of its AsyncEngineArgs"
    return f"vllm.{written}: vLLM's engine has no such argument; {hint}"


def _name(written: Any) -> str:
    if not isinstance(written, str):
        raise ConfigError(f"vllm: {show(written)} is not the name of an argument")
    whole, dot, members = written.removeprefix("--").partition(".")
    name = whole.replace("-", "_")
    if reason := DECIDED.get(name):
        raise ConfigError(f"vllm.{written}: a model cannot give it: {reason}")
    return f"{name}{dot}{members}"
