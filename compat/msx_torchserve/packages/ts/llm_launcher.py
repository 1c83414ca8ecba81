"""`python -m ts.llm_launcher`: serves one language model by vLLM's engine, until Ctrl-C."""

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from msx_archiver.errors import ArchiveError
from msx_core.service_errors import ServiceError
from msx_core.start_errors import StartError

from ._llm_folder import model_folder
from .launcher import start, stop

ENGINES = ("vllm", "trt_llm")
NO_TRT_LLM = (
    "--engine trt_llm: TensorRT-LLM is not served here: leave --engine out for vLLM's engine, or serve the model by "
    "MSX's own with msx-serve FOLDER (docs/engines.md)"
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m ts.llm_launcher", description=__doc__)
    add = made.add_argument
    add("--model_name", default="model", help="name under which the model is served")
    add("--model_store", default="model_store", help="folder in which the model's folder is made")
    add("--model_id", default="meta-llama/Meta-Llama-3.1-8B-Instruct", help="a hub's name of the model, or a folder")
    add("--disable_token_auth", action="store_true", help="requests need no key")
    add("--vllm_engine.max_num_seqs", dest="max_num_seqs", type=int, default=256, help="texts at a time")
    add("--vllm_engine.max_model_len", dest="max_model_len", type=int, help="tokens of prompt and text")
    add("--vllm_engine.download_dir", dest="download_dir", type=Path, help="folder for models of hubs (hub_dir)")
    add("--startup_timeout", type=int, default=1200, help="seconds that the model may take to load")
    add("--engine", choices=ENGINES, default="vllm", help="vllm; trt_llm is not served")
    add("--dtype", default="bfloat16", help="of trt_llm alone: no effect")
    add("--trt_llm_engine.max_batch_size", type=int, default=4, help="of trt_llm alone: no effect")
    add(
        "--trt_llm_engine.kv_cache_free_gpu_memory_fraction",
        type=float,
        default=0.1,
        help="of trt_llm alone: no effect",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status, when the server has ended."""
    reader = parser()
    args = reader.parse_args(arguments)
    if args.engine != ENGINES[0]:
        reader.error(NO_TRT_LLM)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as by Ctrl-C, so that nothing is left
    try:
        with model_folder(args):
            return _serve(args)
    except (ArchiveError, ServiceError, StartError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201  # for the user of the command
        return 1


def _serve(args: argparse.Namespace) -> int:
    """1 where the server does not start, or ends by itself."""
    try:
        lines = start(
            args.model_store, no_config_snapshots=True, models=args.model_name, disable_token=args.disable_token_auth
        )
        while lines.get() is not None:
            pass
        return 1
    except KeyboardInterrupt:
        return 0
    except subprocess.CalledProcessError as error:
        return error.returncode
    finally:
        stop(wait=False)


if __name__ == "__main__":
    sys.exit(main())
