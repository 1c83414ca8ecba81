"""Runs in an interpreter with vLLM: `python -m tests.vllm.real CALL FOLDER` writes what it finds as JSON."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from msx_core.interpreter_probe import vllm_arguments
from msx_core.unknown_families import VLLMS
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import (
    Constraint,
    GenerateRequest,
    LoadAdapterRequest,
    MessageDelta,
    ParseOptions,
    SamplingParams,
)
from msx_sdk.testing import LocalModel
from msx_vllm.parser_names import ParserNames
from tests.vllm.both_servers import differences, together
from tests.vllm.cases import CASES, COMPUTED, GREEDY, REFUSED, Case, Refusal, Refused, ask
from tests.vllm.members import missing_members
from tests.vllm.pictures import BLUE, IMAGES, LIMIT, RED, REFUSED_IMAGES, asked, picture
from tests.vllm.plugged import SECTION, greedy, plugged, slept
from tests.vllm.shown_metrics import HISTOGRAMS
from tests.vllm.tiny_model import make_adapter

STUB = Path(__file__).parent / "stub"
THOUGHT = '<think>hm</think>Well. <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
CONFIG: dict[str, Any] = {
    "vllm": SECTION,
    "maxConcurrent": 8,
}
THIN = Refused("a line", asked(picture(width=2000, height=4)), GREEDY, "messages: the model.*aspect ratio")


def own_names(folder: str) -> list[str]:
    """The findings of the three calls below, each behind its name."""
    return [f"{call.__name__} {found}" for call in (names, arguments, families) for found in call(folder)]


def names(folder: str) -> list[str]:
    """The names of the stub that vLLM does not have, or has with other parameters; members that are read of its objects
    and are not there."""
    modules = [path.relative_to(STUB).with_suffix("") for path in sorted((STUB / "vllm").rglob("*.py"))]
    dotted = [".".join(path.parts).removesuffix(".__init__") for path in modules]
    members = missing_members(_stub("vllm.v1.engine.async_llm"))
    return [*(wrong for name in dotted for wrong in _differences(name)), *members]


def families(folder: str) -> list[str]:
    """Language models of transformers whose architecture this vLLM has, or `VLLMS` says it has, but not both."""
    from vllm.model_executor.models import registry

    modeling_auto = importlib.import_module("transformers.models.auto.modeling_auto")
    groups = ("_TEXT_GENERATION_MODELS", "_MULTIMODAL_MODELS", "_TRANSFORMERS_SUPPORTED_MODELS")
    known = {name for group in groups for name in getattr(registry, group)}
    names = ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES")
    pairs = [pair for name in names for pair in getattr(modeling_auto, name).items()]
    served = {kind for kind, made in pairs if known & ({made} if isinstance(made, str) else set(made))}
    return sorted(served ^ (VLLMS & dict(pairs).keys()))


def arguments(folder: str) -> list[str]:
    """Names of the engine's arguments that are read from vLLM's source, or that it has, but not both."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    has = {field.name for field in dataclasses.fields(AsyncEngineArgs)}
    return sorted(has ^ set(vllm_arguments()))


def answers(folder: str) -> list[str]:
    """The cases that the handler does not answer as they say."""
    from msx_vllm.handler import VllmHandler

    with LocalModel(VllmHandler, folder, config={**CONFIG, "toolParser": "vllm:hermes"}) as model:
        series = model.handler.owner.llm.series
        figures, names = series.figures(), {one.name for one in series.series()}
        told = figures.blocks_total > 0 and figures.prefix_placed > 0 and set(HISTOGRAMS) <= names
        return [
            *_wrong(model, [*CASES, *COMPUTED]),
            *_unaborted(model),
            *_unrefused(model, REFUSED),
            *_unparsed(model),
            *([] if told else [str(figures)]),
        ]


def images(folder: str) -> list[str]:
    """The cases that a model of images does not answer as they say, and images that change nothing or harm others."""
    from msx_vllm.handler import VllmHandler

    section = {**CONFIG["vllm"], "limit-mm-per-prompt": {"image": LIMIT}}
    with LocalModel(VllmHandler, folder, config={"vllm": section}) as model:
        texts = [ask(model, {**asked(picture(colour)), "stream": False}, GREEDY) for colour in (RED, BLUE, RED)]
        found = ["" if isinstance(one, Refusal) else one[0].text for one in texts]
        wrong = [] if found[0] == found[2] != found[1] else [str(texts)]
        wrong += [*_wrong(model, IMAGES), *_unrefused(model, [*REFUSED_IMAGES, THIN])]
        after = ask(model, {**asked(picture(BLUE)), "stream": False}, GREEDY)
    return wrong if isinstance(after, list) and after[0].text == found[1] else [*wrong, f"afterwards: {after}"]


def parsers(folder: str) -> list[str]:
    """Texts that vLLM's parsers do not divide into a thought and a call, piece by piece and whole."""
    from vllm.tokenizers import get_tokenizer

    from msx_vllm.engine.parsers import EngineParsers

    tokenizer = get_tokenizer(folder)
    tokenizer.add_tokens(["<think>", "</think>"], special_tokens=True)
    config = SimpleNamespace(hf_config=SimpleNamespace(model_type="llama"))
    engine = SimpleNamespace(get_tokenizer=lambda: tokenizer, model_config=config)
    made = EngineParsers(engine, ParserNames("hermes", "qwen3"))
    request = GenerateRequest(messages=[{"role": "user", "content": "a"}], tools=TOOLS)
    ids = tokenizer.encode(THOUGHT, add_special_tokens=False)
    texts = [tokenizer.decode(ids[:end]) for end in range(len(ids) + 1)]
    wrong = []
    for pieces in ([(THOUGHT, ids)], [(texts[at + 1][len(texts[at]) :], [id]) for at, id in enumerate(ids)]):
        parsing, parts = made.parsing(request, ParseOptions()), list[MessageDelta | None]()
        for number, (text, tokens) in enumerate(pieces, 1):
            end = "stop" if number == len(pieces) else None
            output: Any = SimpleNamespace(index=0, text=text, token_ids=tokens, finish_reason=end)
            parts.append(parsing.message(output, [5], stream=len(pieces) > 1))
        if (found := _joined(parts)) != ("hm", "Well.", ["f"], {"a": 1}):
            wrong.append(str(found))
    return wrong


def both(folder: str) -> list[str]:
    """Differences between vLLM's own server and MSX on one engine."""
    from msx_vllm.handler import VllmHandler

    with LocalModel(VllmHandler, folder, config=CONFIG) as model:
        return [*differences(model, Path(folder).parent / "requests.json"), *together(model)]


def adapters(folder: str) -> list[str]:
    """Texts of an adapter that are those of the model alone, and adapters that are taken though they do not fit."""
    from msx_vllm.handler import VllmHandler

    options = {"loadable": True, "maxRank": 8}
    with LocalModel(VllmHandler, folder, config={**CONFIG, "adapters": options}) as model:
        own, other = (
            ask(model, {"prompt": "the sea", "stream": False, "adapter": name}, GREEDY) for name in ("", "large")
        )
        wrong = "" if not isinstance(own, Refusal) and not isinstance(other, Refusal) else f"{own} {other}"
        if not wrong and own[0].text == other[0].text:  # type: ignore[union-attr]
            wrong = "the adapter changes nothing"
        unfit = LoadAdapterRequest(name="unfit", folder=str(make_adapter(Path(folder).parent / "unfit", width=64)))
        try:
            wrong += str(model._loop.run_until_complete(model.handler.owner.load_adapter(unfit, model.context)))
        except InvalidInput as error:
            wrong += "" if str(error).startswith("adapter unfit: base_model.model.") else str(error)
        again = ask(model, {"prompt": "the sea", "stream": False}, GREEDY)
    return [one for one in (wrong, str(again) if isinstance(again, Refusal) else "") if one]


def _wrong(model: LocalModel, cases: list[Case]) -> Iterator[str]:
    for case in cases:
        deltas = ask(model, case.request, case.params)
        if isinstance(deltas, Refusal) or not case.holds(deltas):
            yield f"{case.name}: {deltas}"


def _unaborted(model: LocalModel) -> Iterator[str]:
    """A text whose client has left is not computed any longer."""
    engine = model.handler.owner.llm._engine

    async def leave() -> int:
        request = GenerateRequest(prompt="abc", params=SamplingParams(max_tokens=200, ignore_eos=True))
        deltas = model.handler.owner.llm.texts(request, 1, "left")
        async for _ in deltas:
            break
        await deltas.aclose()
        return int(engine.output_processor.get_num_unfinished_requests())

    if left := model._loop.run_until_complete(leave()):
        yield f"{left} texts go on without a client"


def _unparsed(model: LocalModel) -> Iterator[str]:
    """A text that is held to a call is parsed into it, in a stream and whole."""
    call = r'<tool_call>\{"name": "f", "arguments": \{"a": 1\}\}</tool_call>'
    params = {"temperature": 0.0, "constraint": Constraint(kind="regex", value=call)}
    request = {"messages": [{"role": "user", "content": "abc"}], "tools": TOOLS, "parse": ParseOptions()}
    for stream in (True, False):
        deltas = ask(model, {**request, "stream": stream, "add_special_tokens": False}, params)
        if isinstance(deltas, Refusal):
            yield str(deltas)
        elif (found := _joined([delta.message for delta in deltas])) != ("", "", ["f"], {"a": 1}):
            yield f"stream {stream}: {found}"


def _joined(parts: list[MessageDelta | None]) -> tuple[str, str, list[str], Any]:
    """Reasoning, content, names of calls, and the arguments of the one call."""
    known = [part for part in parts if part is not None]
    calls = [one for part in known for one in part.calls]
    arguments = "".join(one.arguments for one in calls)
    thought, content = ("".join(getattr(part, name) for part in known) for name in ("reasoning", "content"))
    return thought.strip(), content.strip(), [one.name for one in calls if one.id], json.loads(arguments or "null")


def _unrefused(model: LocalModel, cases: list[Refused]) -> Iterator[str]:
    for case in cases:
        found = ask(model, case.request, case.params)
        if not isinstance(found, Refusal) or not re.match(case.message, found.message):
            yield f"{case.name}: {found}"


def _differences(name: str) -> Iterator[str]:
    real, stub = importlib.import_module(name), _stub(name)
    for public, made in vars(stub).items():
        if (
            public.startswith("_")
            or inspect.ismodule(made)
            or getattr(made, "__module__", name) != name
            or public.isupper()
        ):
            continue
        if public in ("human", "scores", "outputs_of", "Renderer", "LetterParser"):  # the stub's own
            continue
        theirs = getattr(real, public, None)
        if theirs is None:
            yield f"{name}.{public}"
        elif inspect.isfunction(made):
            yield from _unknown(f"{name}.{public}", made, theirs)
        elif inspect.isclass(made) and inspect.isclass(theirs):
            yield from _of_class(f"{name}.{public}", made, theirs)


def _of_class(name: str, made: type, real: type) -> Iterator[str]:
    for method, function in vars(made).items():
        if inspect.isfunction(function) and not method.startswith("_") and hasattr(real, method):
            yield from _unknown(f"{name}.{method}", function, getattr(real, method))
    members = ("__dataclass_fields__", "__struct_fields__", "model_fields")
    known = {*dir(real), *(name for one in members for name in getattr(real, one, ()))}
    yield from (
        f"{name}.{field}"
        for field in getattr(made, "__annotations__", ())
        if field not in known | {"made", "tasks", "reads"}
    )


def _unknown(name: str, made: Callable[..., object], real: Callable[..., object]) -> Iterator[str]:
    """Parameters that the real one does not have."""
    theirs = inspect.signature(real).parameters
    yield from (f"{name}({parameter})" for parameter in inspect.signature(made).parameters if parameter not in theirs)


def _stub(name: str) -> ModuleType:
    path = STUB / Path(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    call, folder, result = sys.argv[1:]
    os.chdir(Path(result).parent)
    known = (own_names, answers, adapters, parsers, images, both, plugged, greedy, slept)
    Path(result).write_text(json.dumps({one.__name__: one for one in known}[call](folder)))
