"""Variables that MindSpore and CANN read at import, for the operators that the engine calls.

Values are those of vllm-mindspore 0.5.1 (scripts.py) and mindformers 2.1.0 (core/context/build_context.py), which run
the same operators.
"""

import os

from msx_core.config.sections import MOST_CAPTURES

VARIABLES = {
    "MS_ENABLE_INTERNAL_BOOST": "on",  # the kernels for inference: attention over blocks has no others
    # The masks that we pass mean what ATB's kernels take them for; MindSpore's own would be taken by default.
    "MS_INTERNAL_DISABLE_CUSTOM_KERNEL_LIST": "FlashAttentionScore,PagedAttention",
    "MS_ALLOC_CONF": "enable_vmm:true",  # blocks of other sizes are made of freed ones, so that memory is not in pieces
    "CUSTOM_MATMUL_SHUFFLE": "on",  # products take their tiles in an order that reuses the cache of the cores
    "ASCEND_LAUNCH_BLOCKING": "0",  # operators are launched ahead of the device
    "TE_PARALLEL_COMPILER": "0",  # nothing is compiled beside: the kernels are ready-made
    "MS_DEV_RUNTIME_CONF": f"graph_capture_max_number:{MOST_CAPTURES}",  # for captureBuckets
    "HCCL_OP_EXPANSION_MODE": "AIV",  # collectives are unrolled on the vector cores: small sums take microseconds
    "HCCL_DETERMINISTIC": "false",
    "LCCL_DETERMINISTIC": "0",
    "MS_ENABLE_LCCL": "off",
    "HCCL_EXEC_TIMEOUT": "7200",  # seconds; ranks may wait for work, and the server watches them
    "MS_NODE_TIMEOUT": "180",
}


def set_variables() -> None:
    """Sets those that the operator has not set. Call it before MindSpore is imported."""
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)
