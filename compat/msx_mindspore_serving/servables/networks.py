"""Loads the MindIR files of a servable's models."""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msx_core.config import parse_model_config
from msx_core.mindir_indices import index_limits
from msx_core.mindspore.encrypted import Decryption
from msx_core.mindspore.network import load_mindir_file
from msx_core.mindspore.row_check import check_rows
from msx_core.servables import Model, ModelDeclaration, Servable
from msx_mindspore_serving.servables.batch_sizes import batch_size_of, check_counts
from msx_mindspore_serving.servables.models import ServedModel, Subgraph
from msx_sdk import Context, HandlerLoadError
from msx_sdk.mindspore import Network, setup

log = logging.getLogger("msx.servable")
_MINDIR = ("mindir", "mindir_opt")
_NAMES = {"om": "OM", "mindir_lite": "MindIR_Lite"}
_ON_ASCEND = ("precision_mode",)


class ModelFiles:
    """Where the files of a servable's version are, and what opens and describes them."""

    def __init__(self, context: Context, decryption: Decryption | None) -> None:
        start = context.info.servable
        self.context, self.decryption = context, decryption
        self.name = context.model_name
        self.version = context.model_version
        self.directory = (start.directory if start is not None else "") or str(context.model_dir.parent)
        self.folder = context.model_dir / self.version

    def load(self, servable: Servable) -> dict[str, ServedModel]:
        """Load the models, by key. Raises HandlerLoadError, in MindSpore Serving's words."""
        declarations = [model.declaration for model in servable.models.values()]
        if not declarations:
            return {}
        if not self.folder.is_dir():
            raise HandlerLoadError(self._no_folder())
        for declaration in declarations:
            self._check_format(declaration)
        paths = [self.folder / file for declaration in declarations for file in declaration.files]
        _pin(declarations)
        target = setup(self.context, paths, _threads(declarations))
        _apply(declarations, target)
        models = {model.key: self._load(model) for model in servable.models.values()}
        if parse_model_config(self.context.model_yaml_config)[0].warmup is not False:
            self.context.report_progress("warming up")
            for model in models.values():
                model.warm_up()
        return models

    def _load(self, model: Model) -> ServedModel:
        declaration = model.declaration
        try:
            joined = declaration.with_batch_dim and not declaration.without_batch_dim_inputs
            networks = [self._network(file, joined=joined) for file in declaration.files]
        except HandlerLoadError as error:
            raise HandlerLoadError(self._failed(declaration, str(error))) from error
        return served(model, networks)

    def _network(self, file: str, *, joined: bool) -> Network:
        """`joined`: instances become rows of one call."""
        path = self.folder / file
        # A start script's files are links to where they are: a link may lead anywhere, a name may not.
        if Path(file).is_absolute() or ".." in Path(file).parts or not path.is_file():
            raise HandlerLoadError(f"the file '{file}' is not in the folder of version {self.version}")
        network = load_mindir_file(path, self.context, self.decryption)
        if joined:
            limits = {} if self.decryption else index_limits(path)
            check_rows(network, path.name, self.context, limits, judged=True)
        return network

    def _check_format(self, declaration: ModelDeclaration) -> None:
        if declaration.format not in _MINDIR:
            device = self.context.info.framework_device
            raise HandlerLoadError(
                f"Raise failed: Not support device type {device.target if device else 'None'} and "
                f"model type {_NAMES[declaration.format]}. Current inference backend: MindSpore. Export the model "
                "as MindIR."
            )

    def _failed(self, declaration: ModelDeclaration, details: str) -> str:
        files = ", ".join(declaration.files)
        return (
            f"Raise failed: Load model failed, servable directory: '{self.directory}', servable name: '{self.name}', "
            f"model file: '[{files}]', version number {self.version},model context: {_shown(declaration)}, "
            f"load error details: {details}"
        )

    def _no_folder(self) -> str:
        place = f"servable directory: {self.directory}, servable name: {self.name}"
        if any(path.name.isdigit() and path.is_dir() for path in self.context.model_dir.iterdir()):
            return (
                "Raise failed: Start servable failed: There is no specified version directory of models, specified "
                f"version number: {self.version}, servable directory: '{self.directory}', servable name: '{self.name}'"
            )
        return (
            "There is no valid version directory of models while there are models declared in servable_config.py, "
            f"{place}"
        )


def served(model: Model, networks: Sequence[Network]) -> ServedModel:
    """Raises HandlerLoadError for networks that are not what the servable declares."""
    subgraphs = [Subgraph(network.inputs, network.outputs) for network in networks]
    check_counts(model, subgraphs)
    size = batch_size_of(model.declaration, subgraphs)
    return ServedModel(model.declaration, subgraphs, lambda arrays, number: networks[number](arrays), size)


def _pin(declarations: Iterable[ModelDeclaration]) -> None:
    """`thread_affinity_core_list`: threads that MindSpore starts later run there."""
    cores = {core for one in declarations if one.context is not None for core in one.context.thread_affinity_core_list}
    if not cores:
        return
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        log.warning("thread_affinity_core_list %s has no effect: %s", sorted(cores), error)


def _threads(declarations: Iterable[ModelDeclaration]) -> int | None:
    """The most that a context asks for."""
    given = [one.context.thread_num for one in declarations if one.context is not None and one.context.thread_num]
    return max(given, default=None)


def _apply(declarations: Iterable[ModelDeclaration], target: str) -> None:
    """Contexts and device infos, as far as MindSpore has them; what it does not have is logged."""
    import mindspore as ms

    unused: set[str] = set()
    for one in declarations:
        if one.context is not None and one.context.enable_parallel is not None:
            unused.add("enable_parallel")
        for kind, options in _device_options(one):
            unused |= _apply_device(ms, kind, options, target)
        unused |= {"config_file"} if one.config_file is not None else set()
    if unused:
        log.warning("declare_model: %s: accepted, without effect on this server", ", ".join(sorted(unused)))


def _apply_device(ms: Any, kind: str, options: Mapping[str, str], target: str) -> set[str]:
    """Returns the options that were not applied."""
    if kind != "ascend" or target != "Ascend":
        return {f"{kind} {name}" for name in options}
    if "precision_mode" in options:
        ms.device_context.ascend.op_precision.precision_mode(options["precision_mode"])
    return {f"{kind} {name}" for name in options if name not in _ON_ASCEND}


def _device_options(declaration: ModelDeclaration) -> list[tuple[str, Mapping[str, str]]]:
    infos = [] if declaration.context is None else list(declaration.context.device_infos.values())
    infos += [] if declaration.options is None else [declaration.options]
    return [(info.kind, info.given) for info in infos if info.given]


def _shown(declaration: ModelDeclaration) -> dict[str, Any]:
    context = declaration.context
    threads = {} if context is None or context.thread_num is None else {"thread_num": context.thread_num}
    return {**threads, **dict(_device_options(declaration))}
