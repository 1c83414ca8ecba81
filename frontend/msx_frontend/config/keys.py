"""Names around the server's keys: aliases, environment variables, and keys that do nothing here: of TorchServe, and
retired ones of this server."""

ALIASES = {"number_of_gpu": "number_of_npu"}

# Upstream has no TS_ variable for these; `state_dir` has MSX_STATE_DIR, which always counts.
NOT_FROM_ENV = {
    "enable_envvars_config",
    "metric_time_interval",
    "model_snapshot",
    "models",
    "snapshots",
    "state_dir",
    "system_metrics_cmd",
}

_JAVA = "MSX is not a Java program"
_PORTS = "workers inherit their sockets and need no ports"
_INTEL = "set the worker's CPU options under mindspore: in model-config.yaml"

WITHOUT_MEANING = {
    "async_logging": _JAVA,
    "cpp_log_config": "there are no C++ workers",
    "cpu_launcher_args": _INTEL,
    "cpu_launcher_enable": _INTEL,
    "debug": "use the log configuration",
    "direct_predictions": "predictions have one way; grpc_transport=grpcio chooses gRPC's own server",
    "initial_distribution_port": _PORTS,
    "initial_worker_port": _PORTS,
    "io_ratio": _JAVA,
    "ipex_enable": _INTEL,
    "ipex_gpu_enable": _INTEL,
    "model_server_home": "MSX finds its own packages",
    "netty_client_threads": _JAVA,
    "number_of_netty_threads": _JAVA,
    "prefer_direct_buffer": _JAVA,
    "tsConfigFile": "use --ts-config or TS_CONFIG_FILE",
    "use_native_io": _JAVA,
    "version": "use --version",
    "vmargs": _JAVA,
}


def env_names(name: str) -> list[str]:
    """The environment variables of a key, in ascending precedence; named like TorchServe's Java constants."""
    if name == "token_expiration_min":
        return ["TS_TOKEN_EXPIRATION_TIME_MIN"]
    if name == "number_of_npu":
        return ["TS_NUMBER_OF_GPU", "TS_NUMBER_OF_NPU"]
    return [name.upper() if name.startswith("ts_") else f"TS_{name.upper()}"]
