"""All that one `servable_config.py` declares, and which one is being imported."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msx_core.servables.method import ServableMethod
from msx_core.servables.model import Model, ModelDeclaration

CONFIG_NAME = "servable_config.py"


@dataclass(frozen=True)
class FunctionUse:
    """How stages use a function: all of them alike."""

    function: Callable[..., Any]
    inputs_count: int
    outputs_count: int
    batched: bool


@dataclass
class Servable:
    """`models` by their keys, `methods` by name, `functions` by `{servable}.{function}`: the last of a name wins."""

    name: str
    folder: Path
    models: dict[str, Model] = field(default_factory=dict)
    methods: dict[str, ServableMethod] = field(default_factory=dict)
    functions: dict[str, FunctionUse] = field(default_factory=dict)

    @property
    def distributed(self) -> Model | None:
        """Its one model, if that runs on several ranks."""
        return next((model for model in self.models.values() if model.declaration.distributed), None)

    def declare(self, declaration: ModelDeclaration) -> Model:
        """Raises RuntimeError."""
        self._check(declaration)
        model = self.models[declaration.key] = Model(declaration)
        return model

    def add_method(self, method: ServableMethod) -> None:
        """Raises RuntimeError."""
        if method.name in self.methods:
            raise RuntimeError(f"Raise failed: Method {method.name} has been registered more than once.")
        self.methods[method.name] = method

    def _check(self, declaration: ModelDeclaration) -> None:
        if declaration.distributed and self.models:
            already = (
                "repeatedly been declared as distributed" if self.distributed else "already been declared as local"
            )
            has = "is" if self.distributed else "has"
            raise RuntimeError(f"Raise failed: Declare distributed model failed, servable {has} {already} servable")
        if declaration.distributed:
            return
        if not declaration.files:
            raise RuntimeError("Raise failed: Declare model failed, model files size cannot be 0")
        if self.distributed:
            raise RuntimeError(
                "Raise failed: Declare model failed, servable has already been declared as distributed servable"
            )
        used = {file for model in self.models.values() for file in model.declaration.files}
        for file in declaration.files:
            if file in used:
                files = ", ".join(declaration.files)
                raise RuntimeError(
                    f"Raise failed: Declare model [{files}] failed, model file '{file}' has already been used"
                )


SERVABLES: dict[Path, Servable] = {}
"""Servables by the real path of their folder."""


def current_servable() -> Servable:
    """The servable whose `servable_config.py` is on the call stack. Raises RuntimeError without one."""
    frame = inspect.currentframe()
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.name == CONFIG_NAME:
            folder = path.parent.resolve()
            return SERVABLES.setdefault(folder, Servable(folder.name, folder))
        frame = frame.f_back
    raise RuntimeError("Failed to obtain the directory of servable_config.py")
