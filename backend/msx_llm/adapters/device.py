"""A rank's adapters: which are in the places of its decoder, and which of its slots has which."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from msx_core.statuses import PREDICTION_FAILED
from msx_llm.adapters.adapter import Adapter
from msx_llm.adapters.catalog import check_rank
from msx_llm.adapters.weights import Pair, read_pairs
from msx_llm.models.adapted import AdaptedLinears
from msx_llm.models.config import DecoderConfig
from msx_llm.models.decoder import DecoderBody
from msx_sdk.errors import HandlerLoadError, PredictionError

HELD = 16
"""Adapters that stay in the host's memory, the least recently placed leave it first."""


class DeviceAdapters:
    def __init__(self, body: DecoderBody, config: DecoderConfig, slots: int) -> None:
        self._config, self._held = config, OrderedDict[Adapter, dict[str, Pair]]()
        self._linears = [
            ([f"{number}.{it.name}" for it in cell.layers], cell)
            for number, layer in zip(body.own, body.layers, strict=True)
            for _, cell in layer.cells_and_names()
            if isinstance(cell, AdaptedLinears)
        ]
        self._inside: dict[int, Adapter] = {}
        self._places = np.zeros(slots + 1, np.int32)

    def adapt(self, slot: int, place: int, adapter: Adapter | None) -> None:
        """See `Adapt`. Raises PredictionError: a file that cannot be read any more fails the request alone."""
        if adapter is not None and self._inside.get(place) != adapter:
            self._put(place, adapter)
        self._places[slot] = place

    def forget(self) -> None:
        """The places are empty: an adapter is put into its place again for its next text."""
        self._inside.clear()

    def picks(self, slots: Sequence[int | None], counts: Any) -> Any:
        """The place of each token's adapter [T]; each slot has `counts` tokens. The slot None is padding."""
        owners = [len(self._places) - 1 if slot is None else slot for slot in slots]
        return np.repeat(self._places[owners], counts)

    def _put(self, place: int, adapter: Adapter) -> None:
        try:
            pairs = self._read(adapter)
            for names, linears in self._linears:
                ranks = (len(pairs[name][0]) for name in names if name in pairs)
                check_rank(adapter.name, max(ranks, default=0), linears.rank)
        except HandlerLoadError as error:
            raise PredictionError(PREDICTION_FAILED, str(error)) from None
        self._inside.pop(place, None)
        for names, linears in self._linears:
            linears.put(place - 1, [pairs.get(name) for name in names])
        self._inside[place] = adapter

    def _read(self, adapter: Adapter) -> dict[str, Pair]:
        if adapter in self._held:
            self._held.move_to_end(adapter)
        else:
            self._held[adapter] = read_pairs(adapter, self._config)
            if len(self._held) > HELD:
                self._held.popitem(last=False)
        return self._held[adapter]
