"""The section `textGeneration` of model-config.yaml."""

import msgspec

SECTION = "textGeneration"


class InputNames(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Names of inputs by what they mean; None for the usual names. `caches` are in the order of the outputs."""

    tokens: str | None = None
    position: str | None = None
    valid_length: str | None = None
    mask: str | None = None
    caches: tuple[str, ...] | None = None


class TwoFiles(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """`prefill` "": the file that was packed with --serialized-file. `logits`: which output they are; the others are
    the caches."""

    prefill: str = ""
    increment: str = "increment.mindir"
    inputs: InputNames = InputNames()
    logits: int = 0
    pad_token: int = 0
