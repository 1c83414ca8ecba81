"""Interface of a model version's handler: operations, tensors, methods, adapters; and whether its batches overlap."""

from typing import NamedTuple

from msx_core.generation import AdapterFiles, Capabilities
from msx_core.kserve.types import Signature
from msx_core.methods import Methods, method_of
from msx_core.service_errors import HandlerMethodNotFound, NotOffered
from msx_frontend.job import OPERATIONS
from msx_frontend.models.versions.sleep import CannotSleep
from msx_frontend.workers.group import WorkerGroup


class Overlap(NamedTuple):
    """Whether preprocess and postprocess run beside inference of another batch, or why not (without a full stop)."""

    enabled: bool
    reason: str


class VersionSchema:
    """Its members, apart from `adapters`, are None until the first worker has loaded the handler."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.capabilities: Capabilities | None = None
        """The operations of the handler."""
        self.signature: Signature | None = None
        """The tensors of its inputs and outputs."""
        self.methods: Methods | None = None
        self.overlap: Overlap | None = None
        self.adapters: dict[str, AdapterFiles] = {}
        """Adapters that were loaded while the model runs, by name."""

    def loaded(self, group: WorkerGroup) -> None:
        """Take what a worker of the version has found in its handler."""
        self.capabilities, self.signature, self.methods = group.capabilities, group.signature, group.methods
        self.overlap = Overlap(group.runner.overlaps, group.sequential)

    @property
    def adapter_names(self) -> tuple[str, ...]:
        """Adapters that a request may choose: packed in the archive, and loaded ones."""
        packed = () if self.capabilities is None else self.capabilities.adapters
        return (*packed, *self.adapters)

    def offers(self, operation: str) -> bool:
        """False while that is not known. A method of which nothing is known yet is checked by the worker.

        Raises NotOffered, HandlerMethodNotFound.
        """
        if operation not in OPERATIONS:
            self._check_method(method_of(operation))
            return True
        if self.capabilities is None:
            return False
        if not getattr(self.capabilities, operation):
            raise NotOffered(self._name, operation)
        return True

    def _check_method(self, name: str) -> None:
        if name and self.methods is not None and name not in (known := [one.name for one in self.methods]):
            raise HandlerMethodNotFound(self._name, name, known)

    def check_sleeps(self) -> None:
        """Raises CannotSleep: any other handler would take the message for a request."""
        if self.capabilities is None or not self.capabilities.sleep:
            raise CannotSleep(self._name)
