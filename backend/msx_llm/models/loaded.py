"""A decoder with its weights."""

from collections.abc import Callable
from typing import NamedTuple

from msx_llm.limits import EngineLimits
from msx_llm.models.config import DecoderConfig
from msx_llm.models.decoder import Decoder
from msx_llm.models.parts import DecoderParts


class LoadedDecoder(NamedTuple):
    """This rank's part of a model, and the limits that fit beside it. `load` reads its weights again."""

    decoder: Decoder
    config: DecoderConfig
    limits: EngineLimits
    parts: DecoderParts
    load: Callable[[], None]
