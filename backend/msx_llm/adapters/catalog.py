"""The adapters that a model has, by name."""

from collections.abc import Iterator
from pathlib import Path

from msx_core.config import AdapterOptions
from msx_llm.adapters.adapter import Adapter
from msx_llm.adapters.files import stamp_of
from msx_llm.adapters.peft import CONFIG, WEIGHTS, read_peft
from msx_llm.adapters.weights import adaptable, check_pairs
from msx_llm.models.adapter_shape import AdapterShape
from msx_llm.models.config import DecoderConfig
from msx_sdk.errors import HandlerLoadError, PredictionError
from msx_sdk.generation import GenerateRequest

UNKNOWN = 404
MOST = 256


class AdapterCatalog:
    def __init__(self, adapters: dict[str, Adapter]) -> None:
        self._adapters = adapters

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._adapters))

    def __len__(self) -> int:
        return len(self._adapters)

    def __iter__(self) -> Iterator[Adapter]:
        return (self._adapters[name] for name in self.names)

    def chosen(self, request: GenerateRequest) -> Adapter | None:
        """The adapter of a request, which brings the place of one that was loaded while the model runs: no worker has
        a list of those. Raises PredictionError 404."""
        if (files := request.adapter_files) is not None:
            return Adapter(request.adapter, files.folder, files.stamp, files.id)
        return self.find(request.adapter) if request.adapter else None

    def find(self, name: str) -> Adapter:
        """Raises PredictionError 404."""
        if (found := self._adapters.get(name)) is None:
            has = f"it has {', '.join(self.names)}" if self._adapters else "it has none"
            raise PredictionError(UNKNOWN, f"The model has no adapter {name!r}; {has}.")
        return found


def packed_adapters(model: Path, options: AdapterOptions | None) -> AdapterCatalog:
    """Adapters in the folders beside the model's weights. Raises HandlerLoadError for one that is not served."""
    options = options or AdapterOptions()
    place = (model / options.folder).resolve()
    if not place.is_relative_to(model.resolve()):
        raise HandlerLoadError(f"adapters.folder: {options.folder} is outside of the archive; pack it")
    folders = sorted(path.parent for path in place.glob(f"*/{CONFIG}"))
    if len(folders) > MOST:
        raise HandlerLoadError(f"adapters.folder: {len(folders)} adapters are more than {MOST}; divide them")
    return AdapterCatalog({folder.name: _adapter(folder, options.max_rank) for folder in folders})


def _adapter(folder: Path, most: int) -> Adapter:
    if not (folder / WEIGHTS).is_file():
        raise HandlerLoadError(f"adapter {folder.name}: there is no {WEIGHTS}")
    check_rank(folder.name, read_peft(folder.name, folder).rank, most)
    return Adapter(folder.name, str(folder), stamp_of(folder.name, folder))


def check_rank(name: str, rank: int, most: int) -> None:
    """Raises HandlerLoadError."""
    if rank > most:
        raise HandlerLoadError(f"adapter {name}: r is {rank}, above adapters.maxRank ({most}); raise that")


def shape_of(catalog: AdapterCatalog, config: DecoderConfig, options: AdapterOptions | None) -> AdapterShape | None:
    """None: the model has no adapters, and computes as if there were no such thing. Raises HandlerLoadError."""
    options = options or AdapterOptions()
    if not len(catalog) and not options.loadable:
        return None
    targets = adaptable(config)
    if not targets:
        raise HandlerLoadError(f"adapters of {config.model_type} are not served; merge them into the model")
    for adapter in catalog:
        check_pairs(adapter, config)
    if options.loadable:
        return AdapterShape(options.max_loras, options.max_rank, targets)
    rank = max(read_peft(adapter.name, Path(adapter.folder)).rank for adapter in catalog)
    return AdapterShape(min(options.max_loras, len(catalog)), rank, targets)
