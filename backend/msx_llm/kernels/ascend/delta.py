"""Gated delta nets, of which no NPU has cells."""

from msx_sdk.errors import HandlerLoadError


def no_delta_nets(kind: str = "these families") -> HandlerLoadError:
    return HandlerLoadError(
        f"config.json, model_type: {kind}: there is no MindSpore code of gated delta nets for an NPU; serve the model "
        "on a CPU, or on an NPU with vllm-ascend"
    )
