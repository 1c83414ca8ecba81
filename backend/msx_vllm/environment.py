"""Variables that vLLM and the compilers below it read; they are set before vLLM is imported, and its processes inherit
them."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msx_vllm import start_errors

ALWAYS = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a worker has threads, and a fork of them may hang
    "VLLM_CONFIGURE_LOGGING": "1",
    # Sockets stand in the worker's folder, which is the working directory of all of its processes, and goes with it.
    # Its full path may be longer than that of a socket may be.
    "VLLM_RPC_BASE_PATH": ".",
    "VLLM_PROCESS_NAME_PREFIX": "VLLM",
}
"""Not to be changed by `env:` or the server's own environment: nothing is reported, and nothing fetched, since all
files of a model are there."""
CACHES = {
    "VLLM_CACHE_ROOT": "vllm",
    "VLLM_CONFIG_ROOT": "vllm-config",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "NUMBA_CACHE_DIR": "numba",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}
"""Folders below the model's cache folder, which outlives the worker; their usual places are in a home, which
`worker_user` does not have."""
LOCAL = {"VLLM_HOST_IP": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
"""Where the processes of one worker meet, unless the operator says otherwise: no other machine reaches their ports."""
REMOVED = ("PROMETHEUS_MULTIPROC_DIR",)
"""Metrics of a worker's processes travel to the server: files of them would stay behind."""
LOG_FILE = "vllm-logging.json"
TEMP = "temp"
"""Folder of vLLM's temporary files, below the worker's: processes that are killed leave theirs."""


def variables(env: Mapping[str, str], work_dir: Path, cache_dir: Path | None) -> dict[str, str]:
    """Variables that are added to `env`. `work_dir`: the worker's own folder, which the server removes with the worker;
    `cache_dir`: as in `ModelInfo`, or else `work_dir`."""
    base = cache_dir or work_dir
    defaults = {**LOCAL, **{name: str(base / folder) for name, folder in CACHES.items()}}
    return {
        **{name: value for name, value in defaults.items() if name not in env},
        **ALWAYS,
        "VLLM_LOGGING_CONFIG_PATH": str(work_dir / LOG_FILE),
        "TMPDIR": str(work_dir / TEMP),
    }


def prepare(work_dir: Path, cache_dir: Path | None) -> None:
    """Set the variables of this process, make its folder for temporary files, and write the configuration of vLLM's
    logging."""
    (work_dir / TEMP).mkdir(exist_ok=True)
    os.environ.update(variables(os.environ, work_dir, cache_dir))
    for name in REMOVED:
        os.environ.pop(name, None)
    tempfile.tempdir = os.environ["TMPDIR"]  # it may have looked before
    (work_dir / LOG_FILE).write_text(json.dumps(log_configuration()))


def log_configuration() -> dict[str, object]:
    """`logging.config`'s dictionary: records of vLLM's processes reach the server as those of the worker do."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"records": {"()": "msx_core.log_records.RecordFormatter"}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "records", "level": "INFO"},
            "errors": start_errors.HANDLER,
        },
        "loggers": {"vllm": {"handlers": ["stderr", "errors"], "level": "INFO", "propagate": False}},
    }
