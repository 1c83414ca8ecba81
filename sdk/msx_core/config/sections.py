"""Sections of a model-config.yaml: their types, and advice on mistyped keys."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

from msx_core import bodies, declared
from msx_core.names import INTERPRETER_NAME
from msx_core.reasoning import FORMATS as REASONING_PARSERS
from msx_core.tool_calls import FORMATS as TOOL_PARSERS
from msx_core.values import ConfigError, Count, Positive, convert, near_miss, show

S = TypeVar("S", bound=msgspec.Struct)
VLLMS = "vllm:"
"""Begins the name of a parser that vLLM has."""


def _parser_of(names: Iterable[str]) -> str:
    return f"^({'|'.join(names)}|{VLLMS}[A-Za-z0-9_.-]{{1,64}})$"


def _parser_words(names: Iterable[str]) -> str:
    return f"one of {', '.join(names)}; with --handler vllm also {VLLMS}NAME, a parser of vLLM's"


Isa = Annotated[str, Meta(pattern="^[A-Za-z0-9_]+$", description="the name of an instruction set")]
InterpreterName = Annotated[
    str,
    Meta(
        pattern=INTERPRETER_NAME,
        description="the name of an interpreter in the server's key pythons (at most 64 letters, digits, '_', '-' and "
        "'.'), not a path",
    ),
]
Ids = Annotated[tuple[Count, ...], Meta(min_length=1, description="a list of device numbers")]
Buckets = Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=12, description="a list of 1 to 12 sizes")]
MOST_CAPTURES = 19
"""Graphs that MindSpore keeps, as vllm-mindspore 0.5.1 sets it (`graph_capture_max_number`)."""
Captures = Annotated[
    tuple[Positive, ...],
    Meta(min_length=1, max_length=MOST_CAPTURES, description=f"a list of 1 to {MOST_CAPTURES} sizes"),
]
ImageRange = Annotated[
    tuple[float, float], Meta(description="a list of two numbers: the sample that is black, and the one that is white")
]
Aliases = Annotated[tuple[str, ...], Meta(description="a list of names")]
Section = Annotated[Any, Meta(description="a mapping")]
Variables = Annotated[Any, Meta(description="a mapping of variables to values, or a list of such mappings")]
Requests = Annotated[tuple[Any, ...], Meta(description="a list of request inputs")]
Inputs = Annotated[Any, Meta(description="the inputs of a request, or a list of requests")]
Replies = Annotated[Any, Meta(description="a reply, or a list of replies")]
ParallelType = Annotated[Literal["", "pp", "tp", "pptp", "custom"], Meta(description="one of pp, tp, pptp, custom")]
PlacementRule = Annotated[
    Literal["pack", "spread", "stagesApart"], Meta(description="one of pack, spread, stagesApart")
]
DeviceType = Annotated[Literal["cpu", "npu", "gpu"], Meta(description="one of npu, gpu, cpu")]
Policy = Annotated[Literal["dynamic", "fixed"], Meta(description="one of dynamic, fixed")]
ReadyAfter = Annotated[Literal["all", "first"], Meta(description="one of all, first")]
GenerationConfig = Annotated[Literal["auto", "none"], Meta(description="one of auto, none")]
DraftMethod = Annotated[Literal["ngram", "draft"], Meta(description="one of ngram, draft")]
DraftTokens = Annotated[int, Meta(ge=1, le=32, description="a number of tokens from 1 to 32")]
NgramSize = Annotated[int, Meta(ge=1, le=16, description="a number of tokens from 1 to 16")]
MOST_ADAPTERS, MOST_ADAPTER_RANK = 64, 512
AdapterPlaces = Annotated[
    int, Meta(ge=1, le=MOST_ADAPTERS, description=f"a number of adapters from 1 to {MOST_ADAPTERS}")
]
AdapterRank = Annotated[int, Meta(ge=1, le=MOST_ADAPTER_RANK, description=f"a rank from 1 to {MOST_ADAPTER_RANK}")]
BodyKind = Annotated[declared.BodyKind, Meta(description="one of json, msgpack, raw, form")]
ReplyKind = Annotated[declared.ReplyKind, Meta(description="one of json, msgpack, raw, events")]
JsonBodies = Annotated[bodies.JsonBodies, Meta(description="one of strict, lenient")]
ToolParser = Annotated[str, Meta(pattern=_parser_of(TOOL_PARSERS), description=_parser_words(TOOL_PARSERS))]
ReasoningParser = Annotated[
    str, Meta(pattern=_parser_of(REASONING_PARSERS), description=_parser_words(REASONING_PARSERS))
]
DecMode = Annotated[Literal["AES-GCM", "AES-CBC"], Meta(description="one of AES-GCM, AES-CBC")]
MOST_PER_DEVICE = 8
PerDevice = Annotated[
    int, Meta(ge=1, le=MOST_PER_DEVICE, description=f"a number of workers from 1 to {MOST_PER_DEVICE}")
]
ProcessCount = Annotated[int, Meta(ge=0, le=64, description="a number of processes from 0 to 64")]
Mode = Annotated[Literal["graph", "pynative"], Meta(description="one of graph, pynative")]


def read_struct(cls: type[S], mapping: Mapping[Any, Any], warnings: list[str], prefix: str = "") -> S:
    """Reads a nested section. An unknown key in it is a warning, since TorchServe does not have these sections."""
    values = read_fields(cls, mapping, warnings, prefix)
    known = names_of(cls)
    for key in mapping:
        if key not in known and not (isinstance(key, str) and near_miss(key, known)):
            warnings.append(f"{prefix}{key}: is not a key of {prefix[:-1]} ({', '.join(known)}) and is ignored")
    return cls(**values)


def read_fields(
    cls: type[msgspec.Struct], mapping: Mapping[Any, Any], warnings: list[str], prefix: str = ""
) -> dict[str, Any]:
    """The known keys of a mapping, by Python name. An empty value (`key:`) counts as not given."""
    known = names_of(cls)
    for key in mapping:
        if isinstance(key, str) and key not in known and (meant := near_miss(key, known)):
            warnings.append(f"{prefix}{key}: is not a known key and is ignored; did you mean {meant}?")
    return {
        field.name: _read(prefix + field.encode_name, mapping[field.encode_name], field.type, warnings)
        for field in msgspec.structs.fields(cls)
        if mapping.get(field.encode_name) is not None
    }


def _read(key: str, value: Any, annotation: Any, warnings: list[str]) -> Any:
    section = next((part for part in (annotation, *get_args(annotation)) if _is_struct(part)), None)
    if section is None or (isinstance(value, bool) and bool in _plain_types(annotation)):
        return convert(key, value, annotation)
    if not isinstance(value, Mapping):
        switch = "true, false or " if bool in _plain_types(annotation) else ""
        raise ConfigError(f"{key}: {show(value)} is not {switch}a mapping with keys {', '.join(names_of(section))}")
    return read_struct(section, value, warnings, f"{key}.")


def _plain_types(annotation: Any) -> set[Any]:
    """The types of a union, without what is annotated of them."""
    return {getattr(part, "__origin__", part) for part in get_args(annotation)}


def _is_struct(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def names_of(cls: type[msgspec.Struct]) -> list[str]:
    """The YAML names of a section's keys."""
    return [f.encode_name for f in msgspec.structs.fields(cls) if f.name not in ("raw", "explicit")]
