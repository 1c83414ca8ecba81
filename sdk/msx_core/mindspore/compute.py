"""A network that is ready to run."""

import logging
from collections.abc import Callable
from typing import Any

from msx_core.mindspore.parallel import Parallel

logger = logging.getLogger(__name__)


def computation(cell: Any, parallel: Parallel) -> Callable[..., Any]:
    """The cell as a function of tensors, eager or compiled according to `mindspore: mode:`; its collectives are
    counted."""
    import mindspore as ms

    from msx_core.mindspore.layers import counted

    cell.set_train(False)
    if ms.get_context("mode") != ms.GRAPH_MODE:
        return cell  # type: ignore[no-any-return]
    ms.set_context(mode=ms.PYNATIVE_MODE)  # what lies between the graphs, messages and chunks, is eager
    if parallel.target == "CPU":
        ms.runtime.launch_blocking()  # the change of mode undoes it, and asynchronous messages hang beside collectives
    if parallel.graphs_hang:
        logger.warning("mindspore.mode: graph has no effect for pptp on a CPU: graphs with collectives hang there")
        return cell  # type: ignore[no-any-return]
    return counted(ms.jit(cell.construct), cell)
