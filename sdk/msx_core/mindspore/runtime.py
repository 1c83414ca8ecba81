"""Sets MindSpore up for serving. The measurements behind the choices are in docs/mindspore-models.md."""

import ctypes
import gc
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from msx_core.cgroup import cores_by_quota
from msx_core.config import MindSporeOptions, parse_model_config
from msx_core.context import Context
from msx_core.mindir import EncryptedMindIRError, MindIRError, read_signature
from msx_core.mindspore.graph_cache import take_folder

ISA = "ONEDNN_MAX_CPU_ISA"
THREADS = "OMP_NUM_THREADS"
_CONVOLUTIONS = ("Conv", "DepthwiseConv", "Deconv")

logger = logging.getLogger(__name__)


def setup(context: Context, files: Sequence[Path] = (), threads: int | None = None) -> str:
    """Prepare MindSpore as the `mindspore:` section of model-config.yaml says; call it before `import mindspore`.

    `files`: MindIR files that the manifest does not name; `threads`: of an operator, where the yaml does not say.

    Returns the device target, "CPU" or MindSpore's name of the worker's device (`device_target`).
    """
    options = parse_model_config(context.model_yaml_config)[0].mindspore
    if options.threads is None and threads is not None:
        options = msgspec.structs.replace(options, threads=threads)
    _set_environment(context, options, files)
    ms = _import_mindspore()
    target = _select_device(ms, context)
    if target == "CPU":
        # Asynchronous launch spins on a machine with few cores: 50 times slower for small operators.
        ms.runtime.launch_blocking()
    if (most := options.threads or _fewer_threads(context, target)) is not None:
        ms.device_context.cpu.op_tuning.threads_num(most)
    if options.mode is not None:
        ms.set_context(mode=ms.GRAPH_MODE if options.mode == "graph" else ms.PYNATIVE_MODE)
    keep_graphs(context)
    return target


def _import_mindspore() -> Any:
    """Import it without looking for garbage meanwhile: that takes a sixth of the import's time and finds hardly any."""
    collects = gc.isenabled()
    gc.disable()
    try:
        import mindspore
    finally:
        if collects:
            gc.enable()
    return mindspore


def _fewer_threads(context: Context, target: str) -> int | None:
    """Limits the threads to the cgroup's quota: MindSpore starts one for each core on which it may run, and they would
    wait for each other. The ranks of a group have one thread each (`init_parallel`)."""
    return cores_by_quota() if target == "CPU" and context.world_size == 1 else None


def device_target(context: Context) -> str:
    """MindSpore's name of the worker's device; "CPU" without one, and where the vendor's library does not load in this
    process: MindSpore itself would end with an error."""
    device = context.info.framework_device
    return "CPU" if context.device_id is None or device is None or not loads(device.library) else device.target


def loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def instruction_set(context: Context, wanted: str | None, files: Sequence[Path] = ()) -> str | None:
    """The limit for oneDNN's kernels, or None for no limit.

    `auto` limits a MindIR with convolutions to AVX2: with AVX-512 oneDNN 3.10 has only its reference
    convolution, 50 times slower; matrix products, all that other models have, are faster with AVX-512.
    """
    if wanted not in (None, "auto"):
        return wanted
    return "AVX2" if any(map(_has_convolutions, [*_named_file(context), *files])) else None


def _named_file(context: Context) -> list[Path]:
    name = context.manifest.get("model", {}).get("serializedFile") or ""
    return [context.model_dir / name.replace("{rank}", str(context.rank))] if name.endswith(".mindir") else []


def _has_convolutions(file: Path) -> bool:
    """True for an encrypted file, too: AVX2 is half as fast without convolutions, AVX-512 far slower with them."""
    try:
        signature = read_signature(file)
    except EncryptedMindIRError:
        return True
    except (OSError, MindIRError):
        return False  # loading the model reports what is wrong with it
    return any(operator.startswith(_CONVOLUTIONS) for operator in signature.op_types)


def _set_environment(context: Context, options: MindSporeOptions, files: Sequence[Path]) -> None:
    """Sets the variables that MindSpore reads when it is imported. Those that the operator has set are kept."""
    os.environ.setdefault("GLOG_v", "3")
    if options.threads is not None:
        os.environ.setdefault(THREADS, str(options.threads))
    isa = instruction_set(context, options.isa, files)
    if isa is None or os.environ.get(ISA):
        return
    if "mindspore" in sys.modules:
        logger.warning("MindSpore is already imported: %s=%s comes too late; call setup() before that", ISA, isa)
    os.environ[ISA] = isa


def _select_device(ms: Any, context: Context) -> str:
    if (target := device_target(context)) != "CPU":
        ms.set_device(target, context.device_id)
    elif context.device_id is not None and context.info.framework_device is None:
        logger.warning(
            "MindSpore cannot use this worker's device, and computes on the CPU. deviceType: cpu in model-config.yaml "
            "leaves the device to other models"
        )
    return target


def _cache_folder(context: Context, wanted: bool | str) -> Path:
    if isinstance(wanted, str):
        return Path(wanted)
    return (context.info.cache_dir or platformdirs.user_cache_path("msx-serve")) / "graphs"


def keep_graphs(context: Context, *key: str) -> None:
    """Have the graphs that are compiled from now on kept on disk, and found there, if the yaml or the handler wants it.

    `key`: what they depend on beside `context.graphs_key`, where that is known only after `setup`, which calls this
    without any. What is known only after the first graph is for `graph_cache.settle`.
    """
    import mindspore as ms

    given = parse_model_config(context.model_yaml_config)[0].mindspore.compile_cache
    wanted = bool(context.graphs_key) if given is None else given
    if not wanted:
        return
    versions = str(getattr(ms, "__version__", "")), context.info.server_version
    folder = take_folder(_cache_folder(context, wanted), context.rank, *versions, context.graphs_key, *key)
    if folder is not None:
        ms.set_context(enable_compile_cache=True, compile_cache_path=str(folder))
