"""Adapters of requests as vLLM's. An engine has room for so many of such a rank from its start on."""

import asyncio
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from vllm.config.lora import MaxLoRARanks
from vllm.lora.request import LoRARequest

from msx_core.config import AdapterOptions
from msx_core.statuses import PREDICTION_FAILED
from msx_sdk.errors import HandlerLoadError, InvalidInput, PredictionError
from msx_sdk.generation import GenerateRequest, LoadAdapterReply, LoadAdapterRequest
from msx_vllm.adapter_shapes import Shapes, check_shapes, model_shapes
from msx_vllm.adapters import check_rank, rank_of, stamp_of

UNKNOWN = 404
MOST_KNOWN = 1024
"""Adapters whose numbers are remembered: those of the archive, and of a version's loads."""


def lora_arguments(packed: Mapping[str, Path], options: AdapterOptions | None) -> dict[str, Any]:
    """Arguments of an engine with room for adapters; none where the model has none. Raises HandlerLoadError."""
    options = options or AdapterOptions()
    if not packed and not options.loadable:
        return {}
    ranks = [rank_of(name, folder) for name, folder in packed.items()]
    wanted = max([*ranks, options.max_rank] if options.loadable else ranks)
    most = next((rank for rank in sorted(get_args(MaxLoRARanks)) if rank >= wanted), None)
    if most is None:
        raise HandlerLoadError(f"adapters: vLLM takes adapters with an r of up to 512, and here it is {wanted}")
    return {"enable_lora": True, "max_loras": options.max_loras, "max_lora_rank": most}


class Loras:
    def __init__(self, engine: Any, packed: Mapping[str, Path]) -> None:
        self._engine, self._packed, self._shapes = engine, dict(packed), Shapes()
        lora = engine.vllm_config.lora_config
        self._most_rank = 0 if lora is None else int(lora.max_lora_rank)
        self._numbers = itertools.count(1)
        self._known: dict[tuple[str, str, str], LoRARequest] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._packed))

    async def begin(self) -> None:
        """Read the archive's adapters once. Raises HandlerLoadError for one that vLLM does not take."""
        for name, folder in self._packed.items():
            await self._taken(name, folder, stamp_of(name, folder), "")

    async def chosen(self, request: GenerateRequest) -> LoRARequest | None:
        """The adapter of a request. Raises PredictionError: 404 for an unknown one, 503 for one whose files have
        changed."""
        if not request.adapter:
            return None
        files, name = request.adapter_files, request.adapter
        if files is None and name not in self._packed:
            has = f"it has {', '.join(self.names)}" if self._packed else "it has none"
            raise PredictionError(UNKNOWN, f"The model has no adapter {name!r}; {has}.")
        folder = self._packed[name] if files is None else Path(files.folder)
        try:
            stamp = stamp_of(name, folder)
            if files is not None and stamp != files.stamp:
                raise HandlerLoadError(f"adapter {name}: its files have changed since it was loaded; load it again")
            return await self._taken(name, folder, stamp, "" if files is None else files.id)
        except HandlerLoadError as error:
            raise PredictionError(PREDICTION_FAILED, str(error)) from None

    async def checked(self, request: LoadAdapterRequest) -> LoadAdapterReply:
        """Whether vLLM takes the adapter. Raises InvalidInput."""
        name, folder = request.name, Path(request.folder)
        try:
            stamp = stamp_of(name, folder)
            await self._taken(name, folder, stamp, "")
            rank = rank_of(name, folder)
        except HandlerLoadError as error:
            raise InvalidInput(str(error)) from None
        return LoadAdapterReply(stamp=stamp, rank=rank)

    async def _taken(self, name: str, folder: Path, stamp: str, id: str) -> LoRARequest:
        """vLLM reads an adapter when it is asked to, before a text needs it: what it cannot read would end the engine.
        Raises HandlerLoadError."""
        key = id, str(folder), stamp
        if (known := self._known.get(key)) is not None:
            return known
        await asyncio.to_thread(self._check, name, folder)
        number = next(self._numbers)
        made = LoRARequest(f"{name}-{number}", number, str(folder))
        try:
            await self._engine.add_lora(made)
        except Exception as error:
            raise HandlerLoadError(f"adapter {name}: vLLM does not take it: {_reason(error)}") from None
        while len(self._known) >= MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[key] = made
        return made

    def _check(self, name: str, folder: Path) -> None:
        """Raises HandlerLoadError."""
        rank = rank_of(name, folder)
        check_rank(name, rank, self._most_rank)
        self._shapes = self._shapes or model_shapes(Path(self._engine.model_config.model))
        check_shapes(name, folder, rank, self._shapes)


def _reason(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[-1]
