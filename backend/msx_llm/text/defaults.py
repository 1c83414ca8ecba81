"""The default sampling of a model, from generation_config.json."""

import logging
from pathlib import Path
from typing import Any

import msgspec

from msx_core.tokenizer_files import read_object
from msx_core.validation import wrong_value
from msx_sdk.generation import SamplingDefaults, SamplingParams

log = logging.getLogger("msx.llm")

FILE = "generation_config.json"


def sampling_defaults(folder: Path) -> SamplingDefaults:
    """`do_sample: false` is greedy. A value that requests may not have is ignored with a warning. Raises
    HandlerLoadError if the file is not a JSON object."""
    config = read_object(folder, FILE)
    if config.get("do_sample") is False:
        return SamplingDefaults(temperature=0.0)
    given = {name: config[name] for name in SamplingDefaults.__struct_fields__ if config.get(name) is not None}
    if config.get("do_sample") is True:
        given.setdefault("temperature", 1.0)
    return SamplingDefaults(**{name: value for name, value in given.items() if _valid(name, value)})


def _valid(name: str, value: Any) -> bool:
    try:
        msgspec.convert({name: value}, SamplingParams)
    except msgspec.ValidationError as error:
        log.warning("%s: %s is left out: %s", FILE, name, wrong_value(error)[1])
        return False
    return True
