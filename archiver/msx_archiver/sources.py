"""Collects the files of an archive, and their paths in it."""

from __future__ import annotations

import filecmp
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msx_archiver.errors import PackError
from msx_archiver.extra_files import expand_extra_files
from msx_archiver.gguf.packed import gguf_files
from msx_archiver.groups import check_group
from msx_archiver.members import path_problem
from msx_archiver.model_files import check_model_files, check_stage_files
from msx_archiver.needs import check_needs
from msx_archiver.options import PackOptions
from msx_archiver.python_files import check_module, find_handler, find_library, warnings_of_names
from msx_archiver.stages import stage_files
from msx_archiver.vllm_names import check_vllm_names
from msx_archiver.weights import find_weights, serialized_name
from msx_core.file_kinds import LFS_POINTER, head_of
from msx_core.group_config import GROUP_CONFIG
from msx_core.manifest import ModelEntry
from msx_core.model_families import GENERATES

if TYPE_CHECKING:
    from msx_core.config import ModelConfig


LONGEST_POINTER = 1024
"""Bytes (git-lfs's specification)."""


@dataclass(kw_only=True)
class FileSet:
    """The files to pack, by path in the archive."""

    files: dict[str, Path] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(file.stat().st_size for file in self.files.values())

    def add(self, files: Iterable[tuple[str, Path]], option: str) -> None:
        """Raises PackError if a file is missing, or if its path in the archive is taken by another file."""
        for path, file in files:
            self._check(path, file, option)
            self.files.setdefault(path, file)

    def _check(self, path: str, file: Path, option: str) -> None:
        if not file.exists():
            raise PackError(f"{option}: '{file}' does not exist.")
        if not file.is_file():
            raise PackError(f"{option}: '{file}' is not a file.")
        if file.stat().st_size <= LONGEST_POINTER and head_of(file).startswith(LFS_POINTER):
            raise PackError(f"{option}: '{file}' is a pointer of Git LFS, not the file itself: run `git lfs pull`.")
        if problem := path_problem(path):
            raise PackError(f"{option}: '{file}' {problem}.")
        other = self.files.get(path)
        if other and not filecmp.cmp(file, other, shallow=False):
            raise PackError(f"{option}: '{file}' and '{other}' differ, and both would be packed as '{path}'.")


@dataclass(kw_only=True)
class ModelSources(FileSet):
    """The manifest's `model` section, and the files."""

    model: ModelEntry


def collect(options: PackOptions, made: Path) -> ModelSources:
    """Finds and checks all files that the options name; `made` is a folder for those that are made of others. Raises
    PackError."""
    if not options.handler:
        return _collect_stages(options)
    is_library = options.runtime == "LSP"
    handler = find_library(options.handler) if is_library else find_handler(options.handler)
    sources = ModelSources(model=_model_entry(options, handler.name))
    if is_library:
        sources.warnings.append("--runtime LSP: TorchServe's C++ workers can run this handler, MSX's cannot.")
    if handler.file:
        sources.add([(handler.file.name, handler.file)], "--handler")
        if not is_library:
            check_module(handler.file, "--handler")
    _add_options(sources, options)
    config = _config(options)
    if config.stages is not None:
        raise PackError("--handler: the config file has stages, which name their own handlers: leave --handler out.")
    if handler.name == GENERATES:
        files, warnings = gguf_files(sources.files, made)
        sources.add(files.items(), "--serialized-file")
        sources.warnings += warnings
    if not is_library:
        groups = sources.files.get(GROUP_CONFIG)
        check_model_files(handler, config.raw.get("model"), options)
        sources.warnings += check_group(handler, config, options.serialized_file, groups)
        check_needs(handler, options, sources.files)
    return sources


def _collect_stages(options: PackOptions) -> ModelSources:
    """Collect the sources of a config file with stages, each of which names its own handler."""
    config = _config(options)
    pipeline = config.pipeline
    if pipeline is None or options.config_file is None:
        raise PackError("--handler is missing: only a model whose config file has stages: can do without it.")
    sources = ModelSources(model=_model_entry(options, None))
    _add_options(sources, options)
    beside = Path(options.config_file).parent
    sources.add(dict(stage_files(pipeline, sources.files, beside)).items(), "--config-file")
    check_stage_files(pipeline, sources.files)
    return sources


def _add_options(sources: ModelSources, options: PackOptions) -> None:
    if options.serialized_file:
        sources.add(find_weights(options.serialized_file), "--serialized-file")
    if options.model_file:
        _add_single(sources, options.model_file, "--model-file")
        check_module(Path(options.model_file), "--model-file")
    if options.requirements_file:
        _add_single(sources, options.requirements_file, "--requirements-file")
    if options.config_file:
        _add_single(sources, options.config_file, "--config-file")
        sources.warnings += check_config(Path(options.config_file))
        check_vllm_names(_config(options), options.python)
    if options.extra_files:
        found, warnings = expand_extra_files(options.extra_files)
        sources.add(found, "--extra-files")
        sources.warnings += [*warnings, *warnings_of_names((path for path, _ in found), "--extra-files")]


def check_config(file: Path) -> list[str]:
    """Returns the warnings about a model config; raises PackError if it is wrong."""
    return _read_config(file)[1]


def _config(options: PackOptions) -> ModelConfig:
    from msx_core.config import parse_model_config

    return _read_config(Path(options.config_file))[0] if options.config_file else parse_model_config({})[0]


def _read_config(file: Path) -> tuple[ModelConfig, list[str]]:
    from msx_core.config import ConfigError, load_model_config

    try:
        return load_model_config(file)
    except ConfigError as error:
        raise PackError(str(error)) from None


def _add_single(sources: ModelSources, name: str, option: str) -> None:
    sources.add([(Path(name).name, Path(name))], option)


def _model_entry(options: PackOptions, handler: str | None) -> ModelEntry:
    return ModelEntry(
        model_name=options.model_name,
        handler=handler,
        model_version=options.version,
        serialized_file=serialized_name(options.serialized_file) if options.serialized_file else None,
        model_file=_base(options.model_file),
        requirements_file=_base(options.requirements_file),
        config_file=_base(options.config_file),
    )


def _base(name: str | None) -> str | None:
    return Path(name).name if name else None
