"""Archives, and folders of links, of llm-serving's models."""

import shutil
import tempfile
from pathlib import Path

from msx_archiver.copying import Watch, unwatched
from msx_archiver.linked_checkpoint import VERSION
from msx_archiver.linked_servable import linked, write_manifest
from msx_archiver.llm_serving.config import OPTION
from msx_archiver.llm_serving.model import ImportedModel
from msx_archiver.options import PackOptions
from msx_archiver.output import Warn, silent
from msx_archiver.pack import archived, check_options
from msx_archiver.servable import YAML
from msx_archiver.sources import FileSet, ModelSources, check_config
from msx_core.manifest import CHOSEN_BY_SERVER, ModelEntry
from msx_core.model_families import GENERATES


def pack_imported(model: ImportedModel, options: PackOptions, *, warn: Warn = silent, watch: Watch = unwatched) -> Path:
    """Makes the archive that the options describe, and returns its path. Raises PackError."""
    check_options(options)
    with tempfile.TemporaryDirectory(prefix="msx-llm-serving-") as made:
        return archived(options, options.model_name, lambda: _collected(model, options, Path(made)), warn, watch)


def link_imported(model: ImportedModel, target: Path) -> Path:
    """A model's folder (`no-archive`) at `target` whose files are links; what stands there is replaced. The server
    chooses the engine of a model in Hugging Face's layout. Raises PackError, OSError."""
    check_options(PackOptions(model_name=model.name, handler=model.handler))
    sources = FileSet()
    sources.add(model.files.items(), OPTION)  # a graph says where its weights are, and may name any path
    if target.is_dir():
        shutil.rmtree(target)
    linked(sources.files.items(), target)
    for name, text in model.texts.items():
        (target / name).write_text(text)
    check_config(target / YAML)
    engine = CHOSEN_BY_SERVER if model.handler == GENERATES else None
    write_manifest(target, _entry(model, model.handler, VERSION, engine))
    return target


def _collected(model: ImportedModel, options: PackOptions, made: Path) -> ModelSources:
    for name, text in model.texts.items():
        (made / name).write_text(text)
    sources = ModelSources(model=_entry(model, options.handler, options.version))
    sources.add(model.files.items(), OPTION)
    sources.add(((name, made / name) for name in model.texts), OPTION)
    sources.warnings += check_config(made / YAML)
    return sources


def _entry(model: ImportedModel, handler: str, version: str, engine: str | None = None) -> ModelEntry:
    return ModelEntry(model_name=model.name, handler=handler, model_version=version, config_file=YAML, engine=engine)
