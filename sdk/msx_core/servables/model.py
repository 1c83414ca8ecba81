"""A model that a servable declares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Instances = Sequence[Sequence[Any]]
ModelCaller = Callable[["ModelDeclaration", int, Instances], tuple[tuple[Any, ...], ...]]
"""Runs a model's subgraph on instances, each with one value an input, and returns the outputs of each. Raises
ModelCallError."""


class ModelCallError(Exception):
    """The model cannot be called so; the message is what follows `call() failed: `."""


@dataclass(frozen=True, kw_only=True)
class ModelDeclaration:
    """Arguments of `declare_model`. Several `files` are subgraphs of one model; `format` is in lower case.

    `rank_size` is 0 unless the model is distributed; then it has no files.
    """

    key: str
    """The files, joined by `;`."""
    files: tuple[str, ...] = ()
    format: str = "mindir"
    with_batch_dim: bool = True
    without_batch_dim_inputs: tuple[int, ...] = ()
    context: Any = None
    options: Any = None
    config_file: str | None = None
    rank_size: int = 0
    stage_size: int = 0
    enable_pipeline_infer: bool = False

    @property
    def distributed(self) -> bool:
        return self.rank_size > 0


class Model:
    """A stage of methods; functions may call it. `declare_model` makes it."""

    def __init__(self, declaration: ModelDeclaration | str) -> None:
        """A model that is made with its key alone was not declared, and cannot be used."""
        known = isinstance(declaration, ModelDeclaration)
        self.declaration = (
            declaration if isinstance(declaration, ModelDeclaration) else ModelDeclaration(key=declaration)
        )
        self.counts: dict[int, tuple[int, int]] = {}
        """Numbers of inputs and outputs that the stages expect, by subgraph."""
        self.declared = known
        self.caller: ModelCaller | None = None
        """Set by the worker when the model is loaded."""

    @property
    def key(self) -> str:
        return self.declaration.key

    def call(self, *args: Any, subgraph: int = 0) -> Any:
        """`call(x1, x2)` returns the outputs of one instance, the only one by itself; `call([[x1, x2], [x1, x2]])`
        those of several, each a tuple. Raises RuntimeError."""
        if isinstance(subgraph, bool) or not isinstance(subgraph, int):
            raise RuntimeError(f"Parameter 'subgraph' should be int, but actually {type(subgraph)}")
        if subgraph < 0:
            raise RuntimeError("Parameter 'subgraph' should be >= 0")
        single, instances = self._instances(args, subgraph)
        place = f", subgraph={subgraph}" if subgraph else ""
        try:
            outputs = self._run(instances, subgraph)
        except ModelCallError as error:
            raise RuntimeError(f"Model({self.key}{place}).call() failed: {error}") from None
        if not single:
            return outputs
        return outputs[0][0] if len(outputs[0]) == 1 else outputs[0]

    def _instances(self, args: tuple[Any, ...], subgraph: int) -> tuple[bool, Instances]:
        """Whether it is one instance, and the instances. Raises RuntimeError."""
        place = f" ,subgraph={subgraph}" if subgraph else ""
        failed = f"Model({self.key}{place}).call() failed: "
        if not args:
            raise RuntimeError(
                f"{failed}no inputs provided, the inputs can be call(x1, x2) for single instance or "
                "call([[x1, x2], [x1, x2]]) for multi instances."
            )
        if len(args) > 1 or not isinstance(args[0], tuple | list):
            return True, (args,)
        if not all(isinstance(instance, tuple | list) for instance in args[0]):
            raise RuntimeError(
                f"{failed}inputs format invalid, the inputs can be call(x1, x2) for single instance or "
                " call([[x1, x2], [x1, x2]]) for multi instances."
            )
        return False, args[0]

    def _run(self, instances: Instances, subgraph: int) -> tuple[tuple[Any, ...], ...]:
        """Raises ModelCallError."""
        if not self.declared:
            raise ModelCallError(
                "the model is not declared, ensure that interface 'declare_model' can take effect when importing "
                "servable_config.py by the serving server"
            )
        if self.caller is None:
            raise ModelCallError("Run worker for inference failed, worker has not been started")
        if subgraph >= (count := max(1, len(self.declaration.files))):
            raise ModelCallError(
                f"The model does not have subgraph of index {subgraph}, the subgraph count of the model is {count}"
            )
        if not instances:
            raise ModelCallError("Input instances count is 0")
        return self.caller(self.declaration, subgraph, instances)
