"""Which chips the engine runs on."""

from typing import Any

from msx_sdk.errors import HandlerLoadError


def check_soc(name: str) -> None:
    """`name` as MindSpore tells it: ascend910b, ascend310p. Raises HandlerLoadError for a chip with other layouts."""
    if name.lower().startswith("ascend310"):
        raise HandlerLoadError(
            f"{name}: language models do not run on this chip: its attention needs keys, values and weights in the "
            "layout NZ, which the engine does not have; use Atlas A2 or A3 (910B, 910C), or the CPU without deviceIds"
        )


def soc_name() -> str:
    """Asks MindSpore, which starts the device for it."""
    from mindspore._c_expression import MSContext

    context: Any = MSContext.get_instance()
    return str(context.get_ascend_soc_version())
