import argparse
import json
from dataclasses import dataclass, field, fields
from typing import Any

from vllm.utils.argparse_utils import FlexibleArgumentParser


def human(value: str) -> int:
    return int(value[:-1]) * 1000 if value.endswith("k") else int(value)


@dataclass
class AsyncEngineArgs:
    model: str = ""
    served_model_name: str | None = None
    generation_config: str = "auto"
    dtype: str = "auto"
    max_model_len: int = 64
    max_num_seqs: int = 8
    enforce_eager: bool = False
    kv_cache_memory_bytes: int | None = None
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    prefill_context_parallel_size: int = 1
    distributed_executor_backend: str | None = None
    scheduling_policy: str = "fcfs"
    enable_lora: bool = False
    enable_sleep_mode: bool = False
    max_loras: int = 1
    max_lora_rank: int = 16
    cudagraph_capture_sizes: list[int] | None = None
    structured_outputs_config: dict[str, Any] = field(default_factory=dict)
    speculative_config: dict[str, Any] | None = None
    runner: str = "auto"
    convert: str = "auto"
    hf_overrides: dict[str, Any] = field(default_factory=dict)
    limit_mm_per_prompt: dict[str, Any] = field(default_factory=dict)
    mm_processor_cache_gb: float = 4

    @staticmethod
    def add_cli_args(parser: FlexibleArgumentParser) -> FlexibleArgumentParser:
        for name in ("enforce-eager", "enable-lora", "enable-sleep-mode"):
            parser.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=False)
        for name in ("max-model-len", "max-num-seqs", "kv-cache-memory-bytes"):
            parser.add_argument(f"--{name}", type=human, default=64 if name == "max-model-len" else None)
        for name in ("tensor", "pipeline", "prefill-context"):
            parser.add_argument(f"--{name}-parallel-size", type=int, default=1)
        for name in ("max-loras", "max-lora-rank"):
            parser.add_argument(f"--{name}", type=int, default=1)
        for name in ("structured-outputs-config", "speculative-config", "hf-overrides", "limit-mm-per-prompt"):
            parser.add_argument(f"--{name}", type=json.loads)
        parser.add_argument("--dtype", choices=["auto", "float32"], default="auto")
        parser.add_argument("--mm-processor-cache-gb", type=float, default=4)
        parser.add_argument("--runner", default="auto")
        parser.add_argument("--convert", default="auto")
        parser.add_argument("--scheduling-policy", default="fcfs")
        parser.add_argument("--cudagraph-capture-sizes", type=int, nargs="+")
        return parser

    @classmethod
    def from_cli_args(cls, args: argparse.Namespace) -> "AsyncEngineArgs":
        names = [one.name for one in fields(cls) if getattr(args, one.name, None) is not None]
        return cls(**{name: getattr(args, name) for name in names})
