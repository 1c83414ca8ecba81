"""`--handler text_generation`: a language model in Hugging Face's layout, on one or several ranks.

Rank 0 has the tokenizer and the engine, and leads; the other ranks execute the steps that it sends.
"""

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from msx_core.cgroup import memory_limit
from msx_core.chat_templates.request_template import RequestTemplates
from msx_core.config import SpeculativeOptions, parse_model_config
from msx_core.generation.wire import encode
from msx_core.json_schema import UNHELD
from msx_core.mindspore.graph_cache import compiling
from msx_core.mindspore.runtime import device_target
from msx_core.tokenizer_files import special_tokens, tokenizer_config
from msx_core.tool_calls import DEFAULT
from msx_llm.adapters.catalog import AdapterCatalog, packed_adapters, shape_of
from msx_llm.adapters.loading import check_adapter
from msx_llm.beam_generation import BeamGeneration
from msx_llm.blocks import BlockPool
from msx_llm.draft_loading import draft_config, load_draft_model
from msx_llm.draft_model import DraftModel
from msx_llm.engine import Engine
from msx_llm.engine_thread import EngineThread
from msx_llm.gauges import EngineGauges
from msx_llm.kernels.devices import engine_device
from msx_llm.models.adapter_shape import AdapterShape
from msx_llm.models.config import DecoderConfig
from msx_llm.models.registry import read_config
from msx_llm.planning import planned, pool_of
from msx_llm.sampling import Constraints
from msx_llm.step import decode
from msx_llm.step_runner import (
    ChoosingRunner,
    GroupingRunner,
    LaterCompilingRunner,
    MixingRunner,
    SleepingRunner,
    execute,
)
from msx_llm.steps import EngineRunner, StartedSteps, StartingRunner, StatefulRunner
from msx_llm.text import Tokenizer
from msx_llm.text.defaults import sampling_defaults
from msx_llm.text.parsers import check_parsers, read_chat
from msx_llm.text.prompts import PromptFiles, Prompts
from msx_llm.text.requests import RequestTexts
from msx_sdk import Context
from msx_sdk.generation import (
    GENERATE,
    Capabilities,
    GenerateDelta,
    GenerateRequest,
    LoadAdapterReply,
    LoadAdapterRequest,
    SamplingDefaults,
    SleepReply,
    SleepRequest,
    TokenizeReply,
    TokenizeRequest,
)
from msx_sdk.mindspore import init_parallel
from msx_sdk.text_generation import TextGenerationHandler

log = logging.getLogger("msx.llm")

LAST_WORDS = 0.5
"""Seconds in which replies with the reason are sent after the model has stopped working; then the worker ends and is
restarted."""
CONSTRAINTS = ("json_schema", "json_object", "regex", "choice", "lark")
MOST_STOPS, MOST_TOP_TOKENS = 16, 20
FEW_WORDS = 16


class EngineConfig(Protocol):
    """The members of a model's configuration that the engine reads. `native`: in a longer prompt than this the keys
    depend on its length, if they `stretches`."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def model_type(self) -> str: ...

    @property
    def stretches(self) -> bool: ...

    @property
    def native(self) -> int: ...


class TextGenerator(TextGenerationHandler):
    packed_with = ("config.json", "tokenizer.json")

    stages = tensor_parallel = 1
    runner: StartingRunner
    config: EngineConfig
    adapters = AdapterCatalog({})
    room: AdapterShape | None = None
    draft_model: DraftModel | None = None
    later: LaterCompilingRunner | None = None

    def initialize(self, context: Context) -> Awaitable[None] | None:
        super().initialize(context)
        if context.rank == 0:
            return self._start()
        self._load()
        return None

    async def generate(self, request: GenerateRequest, context: Context) -> AsyncIterator[GenerateDelta]:
        prepared = await self._prepared(request)
        if prepared.params.beam_search is not None:
            async for delta in self.beams.generate(prepared, context.deadline()):
                yield delta
            return
        with self.engine.submit(prepared, deadline=context.deadline()) as deltas:
            if context.operation() == GENERATE and self._passes_on:
                offer = context._offer
                deltas.offer_to(lambda delta, data: offer(data or encode(delta)))
            async for delta in deltas:
                yield delta
            self.gauges.tell(deltas.times)

    async def load_adapter(self, request: LoadAdapterRequest, context: Context) -> LoadAdapterReply:
        config, room = self.config, self.room
        assert isinstance(config, DecoderConfig)  # the server asks no other model
        assert room is not None
        return await asyncio.to_thread(check_adapter, request, config, room.rank)

    async def tokenize(self, request: TokenizeRequest, context: Context) -> TokenizeReply | msgspec.Raw:
        return await self.texts.tokenized(request)

    async def sleep(self, request: SleepRequest, context: Context) -> SleepReply:
        return SleepReply(level=await self.engine_thread.sleep(request.level))

    def follow(self, message: bytes) -> None:
        """Executes one step on a rank other than 0."""
        execute(self.runner, decode(message))

    def capabilities(self) -> Capabilities:
        if self.context.rank:
            return Capabilities()
        limits = self.limits
        return Capabilities(
            generate=True,
            chat=self.chat is not None,
            template_variables=() if self.chat is None else self.chat.variables,
            request_templates=self.templates is not None,
            tokenize=True,
            beam_search=True,
            sleep=isinstance(self.runner, SleepingRunner),
            constraints=CONSTRAINTS if self.constraints else (),
            unheld_keywords=UNHELD if self.constraints else (),
            sampling=self.sampling,
            adapters=self.adapters.names,
            load_adapter=self.room is not None and self.yaml.adapters is not None and self.yaml.adapters.loadable,
            tool_parser=self.tool_parser,
            reasoning_parser=self.yaml.reasoning_parser or "",
            model_id=self.context.model_name,
            model_type=self.config.model_type,
            max_input_tokens=limits.max_input,
            max_total_tokens=limits.context,
            max_concurrent=limits.max_concurrent,
            concurrent_texts=limits.slots,
            max_best_of=limits.slots,
            max_stop_sequences=MOST_STOPS,
            max_top_tokens=MOST_TOP_TOKENS,
        )

    @property
    def _passes_on(self) -> bool:
        """Nobody wants to see the deltas on their way to the server."""
        kind = type(self)
        return kind.generate is TextGenerator.generate and kind.handle is TextGenerationHandler.handle

    @property
    def tool_parser(self) -> str:
        """The tool parser of the yaml, otherwise the one that fits the chat template."""
        return self.yaml.tool_parser or (DEFAULT.NAME if self.chat is None else self.chat.tool_parser)

    def describe(self) -> dict[str, Any]:
        layout = {"pipeline_stages": self.stages, "tensor_parallel": self.tensor_parallel}
        held = {"context_length": self.limits.context, "concurrent_texts": self.limits.slots}
        left = {} if self.later is None else {"graphs_to_compile": self.later.uncompiled}
        reused = {"prefix_cache": "ends of texts, and where they part"} if self._keeps_states else {}
        return {**super().describe(), **held, **layout, **left, **reused}

    @property
    def _keeps_states(self) -> bool:
        return isinstance(self.runner, StatefulRunner) and self.runner.keeps_states

    async def close(self) -> None:
        if self.context.rank == 0:
            self.gauges.stop()
            self.texts.close()
            await self.engine_thread.close()

    async def _start(self) -> None:
        await self.context.run(self._load)
        self.tokenizer = Tokenizer.from_folder(self.context.model_dir)
        self.chat = read_chat(self.context, self.yaml)
        tokens = special_tokens(tokenizer_config(self.context.model_dir))
        self.templates = RequestTemplates(tokens) if self.yaml.request_chat_template else None
        self.texts = self._texts()
        own = self.yaml.generation_config == "auto"
        self.sampling = sampling_defaults(self.context.model_dir) if own else SamplingDefaults()
        self.constraints = self._constraints()
        chooses = isinstance(self.runner, ChoosingRunner) and self.runner.chooses
        follows = isinstance(self.runner, ChoosingRunner) and self.runner.follows and self._speculative() is None
        self.engine = Engine(
            self.config.vocab_size,
            self.tokenizer,
            self.limits,
            StartedSteps(self.runner, self.context.lead if self.context.world_size > 1 else None).run,
            constraints=self.constraints,
            lanes=self.stages,
            pool=self._pool(),
            native=self.config.native if self.config.stretches else None,
            mixes=isinstance(self.runner, MixingRunner),
            groups=isinstance(self.runner, GroupingRunner) and not self._keeps_states,
            chooses=chooses,
            follows=follows,
            overlaps=self.runner.overlaps,
            speculative=self._speculative(),
            draft_states=self.stages * self.limits.slots if self._keeps_states else None,  # see `with_drafts`
            adapters=self.adapters,
            adapter_places=0 if self.room is None else self.room.places,
            draft_model=self.draft_model,
            later=self.later,
            keep=compiling,
            on_published=self.context._flush,
            on_failure=self._end_worker,
        )
        self.engine_thread = EngineThread(self.engine)
        self.beams = BeamGeneration(self.engine, self.tokenizer, self.limits, self.config.vocab_size)
        self.gauges = EngineGauges(self.context.metrics, self.engine.stats)

    def _texts(self) -> RequestTexts:
        size, longest = self.config.vocab_size, self.limits.max_input
        files = PromptFiles(folder=str(self.context.model_dir), vocab_size=size, longest=longest)
        prompts = Prompts(self.tokenizer, self.chat, size, longest)
        return RequestTexts(prompts, files, self.context.info.largest_body, self.templates)

    def _speculative(self) -> SpeculativeOptions | None:
        """None: each step makes one token of a text."""
        return self.yaml.speculative

    def _pool(self) -> BlockPool | None:
        return pool_of(self.runner, self.limits.slots)

    def _load(self) -> None:
        """Loads this rank's part of the model and compiles its graphs. All ranks meet in here."""
        context = self.context
        self.yaml = parse_model_config(context.model_yaml_config)[0]
        # the limits follow from the memory; graphs have their order of compilation as names
        context.graphs_key = f"{sources()} {memory_limit()} {self.yaml.ready_after}"
        engine_device(device_target(context)).prepare()
        self.parallel = init_parallel(context)  # sets MindSpore up, so it comes before what imports it
        self.stages, self.tensor_parallel = self.parallel.stages, self.parallel.tp_size
        from msx_llm.division import with_drafts, with_whole_experts
        from msx_llm.runner import load_runner

        engine_device(self.parallel.target).check()
        check_parsers(self.yaml)
        config = with_whole_experts(read_config(context.model_dir), self.yaml.parallel.expert_parallel)
        speculative = self._speculative()
        if speculative is not None:
            config = with_drafts(config, self.stages)
        drafting = draft_config(context.model_dir, speculative, config)
        plan = planned(context, self.yaml, config, self.parallel, drafting)
        context.report_progress("reading weights")
        self.adapters = packed_adapters(context.model_dir, self.yaml.adapters)
        self.room = shape_of(self.adapters, config, self.yaml.adapters)
        chooses = self.yaml.device_sampling
        runner = load_runner(context.model_dir, config, plan, self.parallel, adapters=self.room, chooses=chooses)
        self.config, self.runner, self.limits = config, runner, runner.limits
        self.later = self._compiles_later(runner)
        warm_up = runner.warm_up if self.later is None else self.later.warm_up_first
        warm_up(lambda shape: context.report_progress(f"compiling {shape}"))
        if speculative is not None and drafting is not None and self.parallel.rank == 0:
            places = context.model_dir, speculative, drafting, runner.limits, self.parallel
            self.draft_model = load_draft_model(*places, context.report_progress, chooses)

    def _compiles_later(self, runner: EngineRunner) -> LaterCompilingRunner | None:
        """None: all graphs are compiled before the model is ready. Ranks would meet in graphs at different times."""
        wanted = self.yaml.ready_after == "first" and self.parallel.world_size == 1
        return runner if wanted and isinstance(runner, LaterCompilingRunner) else None

    async def _prepared(self, request: GenerateRequest) -> GenerateRequest:
        """Does in a thread what would block the loop, and with it all other texts."""
        constraint = request.params.constraint
        if constraint is not None and self.constraints is not None:
            await asyncio.to_thread(self.constraints.compile, constraint)  # the engine finds it compiled
        if len(request.params.bad_words) > FEW_WORDS:
            await asyncio.to_thread(self.tokenizer.sequences, request.params.bad_words)  # the same
        return await self.texts.with_tokens(request)

    def _constraints(self) -> Constraints | None:
        try:
            return Constraints(self.tokenizer.to_json(), self.tokenizer.eos, self.config.vocab_size)
        except ValueError as error:
            log.warning("constraints by schema or grammar are not available: %s", error)
            return None

    def _end_worker(self, reason: str) -> None:
        log.critical("the worker ends and will be restarted: %s", reason)
        asyncio.get_running_loop().call_later(LAST_WORDS, os._exit, 1)


def sources() -> str:
    """A name for the engine's code: kept graphs of other code are not used."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.blake2b(b"".join(file.read_bytes() for file in files), digest_size=8).hexdigest()
