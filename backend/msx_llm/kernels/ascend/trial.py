"""The memory of the largest step on an NPU, by the device's own figures while the step is tried."""

import mindspore as ms

from msx_core.failures import is_out_of_memory, summary
from msx_llm.kernels.ascend.flat_runner import FlatRunner
from msx_llm.limits import EngineLimits
from msx_llm.models.loaded import LoadedDecoder
from msx_sdk.errors import HandlerLoadError


def tried_memory(loaded: LoadedDecoder, chooses: bool) -> int:
    """Bytes that MindSpore's allocator gave out at once, at most: the weights, the tables of all steps, and what the
    largest step computes. Raises HandlerLoadError."""
    ms.runtime.reset_max_memory_allocated()
    try:
        FlatRunner(loaded.decoder, loaded.config, loaded.limits, loaded.parts, chooses, blocks=1).try_largest()
        ms.runtime.synchronize()
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise _too_large(loaded.limits, error) from error
    most = int(ms.runtime.max_memory_allocated())
    ms.runtime.empty_cache()  # blocks of the step's sizes do not suit those of keys and values
    return most


def _too_large(limits: EngineLimits, error: RuntimeError) -> HandlerLoadError:
    return HandlerLoadError(
        f"the largest step, {limits.batch_prefill} tokens of prompts and one token of each of {limits.slots} texts, "
        "does not fit the device beside the weights: give a smaller maxBatchPrefillTokens or fewer texts by "
        f"slotBuckets ({summary(error)})"
    )
