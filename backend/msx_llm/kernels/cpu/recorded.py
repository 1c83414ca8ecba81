"""Graphs that are recorded while a function runs, and called with next to nothing around them.

`ms.jit(capture_mode="trace")` does the same, but writes all tensors out as text, at each call and for each operator
that it records, for a log that nobody reads: that takes longer than a layer. So this calls what it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar

from mindspore._c_expression import TraceRecorder
from mindspore.graph.api import _convert_python_data
from mindspore.graph.jit_config import _DEFAULT_JIT_CONFIG
from mindspore.graph.jit_context import set_jit_context
from mindspore.graph.jit_trace import TraceJitContext, _convert_arg_for_operators

_WHERE = [__file__], [0]
"""Lines of source for messages; to look them up would take longer than all else."""


class RecordedGraph:
    """`function` takes tensors and returns a tuple of tensors. Everything that changes between two calls is an input:
    a parameter that it finds by itself is a constant. What is written into an input stays there."""

    recorded: ClassVar[int] = 0
    """Graphs that this process has compiled."""

    def __init__(self, function: Callable[..., tuple[Any, ...]]) -> None:
        self._function, self._phases = function, dict[Hashable, str]()

    def __call__(self, shapes: Hashable, *inputs: Any) -> tuple[Any, ...]:
        """`shapes`: those of the inputs that have others now and then."""
        phase = self._phases.get(shapes) or self._record(shapes, inputs)
        output = TraceRecorder.get_instance().run_graph(phase, _DEFAULT_JIT_CONFIG, inputs)
        made: tuple[Any, ...] = _convert_python_data(output)
        return made

    def _record(self, shapes: Hashable, inputs: tuple[Any, ...]) -> str:
        recorder, phase = TraceRecorder.get_instance(), f"msx.{id(self)}.{RecordedGraph.recorded}"
        set_jit_context(_Recording())
        try:
            recorder.begin_graph("layers", phase, *_WHERE, *inputs)
            recorder.end_graph(*_WHERE, _DEFAULT_JIT_CONFIG, *self._function(*inputs))
        finally:
            set_jit_context(None)
        RecordedGraph.recorded += 1
        self._phases[shapes] = phase
        return phase


class _Recording(TraceJitContext):  # type: ignore[misc]
    """MindSpore calls it for each operator."""

    def run_op(self, prim: Any, prim_res: Any, *args: Any) -> Any:
        prim_res, *where, args = self.prepare_op(prim.name, prim_res, *args)
        TraceRecorder.get_instance().new_node(prim, (prim_res, *where, False), *args)
        return prim_res

    def prepare_op(self, prim_name: str, prim_res: Any, *args: Any) -> tuple[Any, ...]:
        return prim_res, *_WHERE, tuple(_convert_arg_for_operators(one, prim_name) for one in args)
