"""`--handler vllm`: a language model in Hugging Face's layout, by vLLM's engine."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msx_core.config import parse_model_config
from msx_core.config.classification import ClassificationOptions
from msx_core.config.vllm_parallel import with_sizes
from msx_core.config.vllm_section import vllm_arguments
from msx_core.generation.counts import texts_asked
from msx_core.mindspore.options import read_options
from msx_core.tool_calls import DEFAULT, format_of_template
from msx_core.tool_calls.unread import warn_of_unread_calls
from msx_sdk import Context
from msx_sdk.errors import HandlerLoadError, InvalidInput, PredictionError
from msx_sdk.generation import (
    Capabilities,
    ClassifyReply,
    ClassifyRequest,
    EmbedReply,
    EmbedRequest,
    GenerateDelta,
    GenerateRequest,
    LoadAdapterReply,
    LoadAdapterRequest,
    SleepReply,
    SleepRequest,
    TokenizeReply,
    TokenizeRequest,
)
from msx_sdk.text_generation import TextGenerationHandler
from msx_vllm import start_errors
from msx_vllm.adapters import packed_adapters
from msx_vllm.checks import is_greedy
from msx_vllm.cores import WorkerShare
from msx_vllm.deltas import OutputDeltas
from msx_vllm.engine_settings import EngineSettings
from msx_vllm.environment import prepare
from msx_vllm.figures import FiguresTeller
from msx_vllm.keys import check_keys
from msx_vllm.parser_names import parser_names
from msx_vllm.platforms import import_plugins
from msx_vllm.spans import spans_of, text_of
from msx_vllm.token_texts import TokenTexts
from msx_vllm.watch import EngineWatch

if TYPE_CHECKING:
    from msx_vllm.engine.llm import Llm

OVERLOADED = 429
CONSTRAINTS = ("json_schema", "json_object", "regex", "choice", "lark")
MOST_TEXTS, MOST_STOPS, MOST_TOP_TOKENS = 128, 16, 20
WRITTEN_FOR = "0.32"
ORDERLY = 10.0
"""Seconds for the engine's processes to end by themselves."""


class VllmHandler(TextGenerationHandler):
    packed_with = ("config.json",)
    uses_uvloop = True  # as vLLM's own server: a token passes its loop several times
    parallel_types = ("custom",)

    llm: "Llm"

    async def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.yaml = parse_model_config(context.model_yaml_config)[0]
        check_keys(self.yaml)
        self.parsers = parser_names(self.yaml)
        prepare(Path.cwd(), context.info.cache_dir)
        context.report_progress("starting vLLM")
        self.llm = await self._started()
        self.tokens = TokenTexts(self.llm.tokenizer)
        warn_of_unread_calls(context.model_name, self.llm.prompts.template or "", self.yaml.tool_parser)
        self._running = 0
        context.report_progress("warming up")
        await self.llm.begin()
        self.figures = FiguresTeller(context.metrics, self.llm.series)
        self._watch = EngineWatch(lambda: self.llm.is_dead)

    async def generate(self, request: GenerateRequest, context: Context) -> AsyncIterator[GenerateDelta]:
        texts, times, parsing = texts_asked(request), None, self.llm.parsing(request)
        copies = request.params.n if is_greedy(request.params) else 1
        deltas = OutputDeltas(request, self.tokens, texts, copies, parsing)
        with self._place():
            if request.params.beam_search is not None:
                async with aclosing(self.llm.best_texts(request, context.get_request_id(0), parsing)) as best:
                    async for delta in best:
                        yield delta
                return
            async with aclosing(self.llm.texts(request, texts, context.get_request_id(0), parsing)) as outputs:
                async for output in outputs:
                    times = output.metrics
                    for delta in deltas.read(output):
                        yield delta
            if times is not None:
                self.figures.queued(times.scheduled_ts - times.queued_ts)

    async def embed(self, request: EmbedRequest, context: Context) -> EmbedReply:
        with self._place():
            return await self.llm.pooling.embed(request, context.get_request_id(0))

    async def classify(self, request: ClassifyRequest, context: Context) -> ClassifyReply:
        with self._place():
            return await self.llm.pooling.classify(request, context.get_request_id(0))

    async def load_adapter(self, request: LoadAdapterRequest, context: Context) -> LoadAdapterReply:
        return await self.llm.loras.checked(request)

    async def sleep(self, request: SleepRequest, context: Context) -> SleepReply:
        return SleepReply(level=await self.llm.sleep.change(request.level))

    async def tokenize(self, request: TokenizeRequest, context: Context) -> TokenizeReply:
        tokenizer = self.llm.tokenizer
        if request.ids is not None:
            return await asyncio.to_thread(text_of, tokenizer, request, self.llm.vocab_size)
        if request.messages is not None:
            written = await self.llm.prompts.written(request)
            return await asyncio.to_thread(spans_of, tokenizer, written, add_special=False)
        if request.prompt is None:
            raise InvalidInput("prompt: expected a text")
        return await asyncio.to_thread(spans_of, tokenizer, request.prompt, add_special=request.add_special_tokens)

    def capabilities(self) -> Capabilities:
        """A model either makes texts, or is one that vLLM runs for vectors or scores."""
        if "generate" in self.llm.tasks:
            return self._of_texts()
        embeds, pooling = "embed" in self.llm.tasks, self.llm.pooling
        labels = () if embeds else pooling.labels
        return Capabilities(
            embed=embeds,
            classify=not embeds,
            rerank=len(labels) == 1,
            labels=labels,
            tokenize=True,
            model_id=self.context.model_name,
            model_type=self.llm.model_type,
            max_input_tokens=self.llm.context,
            max_concurrent=self.yaml.max_concurrent,
            embedding_size=pooling.size if embeds else None,
            prompts=pooling.prompts if embeds else (),
        )

    def _of_texts(self) -> Capabilities:
        prompts = self.llm.prompts
        return Capabilities(
            generate=True,
            chat=prompts.chats,
            template_variables=prompts.variables if prompts.chats else (),
            request_templates=self.yaml.request_chat_template,
            tokenize=True,
            sleep=self.llm.sleep.is_able,
            beam_search=True,
            constraints=CONSTRAINTS,
            unheld_keywords=self.llm.unheld_keywords,
            sampling=self.llm.sampling,
            adapters=self.llm.loras.names,
            load_adapter=self.yaml.adapters is not None and self.yaml.adapters.loadable,
            tool_parser=self.yaml.tool_parser or self._tool_parser(prompts.template),
            reasoning_parser=self.yaml.reasoning_parser or "",
            parses_calls=bool(self.parsers.tools),
            parses_reasoning=bool(self.parsers.reasoning),
            model_id=self.context.model_name,
            model_type=self.llm.model_type,
            max_input_tokens=self.llm.longest,
            max_total_tokens=self.llm.context,
            max_concurrent=self.yaml.max_concurrent,
            concurrent_texts=self.llm.concurrent_texts,
            max_best_of=MOST_TEXTS,
            max_stop_sequences=MOST_STOPS,
            max_top_tokens=MOST_TOP_TOKENS,
            max_images=self.llm.images.most,
        )

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), **self.llm.describe()}

    async def close(self) -> None:
        self._watch.stop()
        self.figures.stop()
        await asyncio.to_thread(self.llm.shutdown, ORDERLY)

    async def _started(self) -> "Llm":
        """Raises HandlerLoadError where vLLM is not installed, or does not take the model or its arguments."""
        import_plugins()
        try:
            from msx_vllm.engine.llm import Llm, started
            from msx_vllm.engine.loras import lora_arguments
            from msx_vllm.pooling_files import read_files, with_answers
        except ModuleNotFoundError as error:
            raise HandlerLoadError(
                f"--handler vllm needs vLLM in the worker's environment, which has no module {error.name}: name an "
                "interpreter with it by python: in model-config.yaml (docs/interpreters.md)"
            ) from None
        except ImportError as error:
            raise HandlerLoadError(f"--handler vllm needs vLLM {WRITTEN_FOR} or one like it: {error}") from error
        settings, yaml = self.settings(), self.yaml
        options = read_options(self.context, "classification", ClassificationOptions)
        files = read_files(settings.folder, options)
        workers, ranks = yaml.max_workers or yaml.min_workers or 1, yaml.layout.devices or 1
        with start_errors.explained(Path.cwd()):
            engine = started(
                settings.folder,
                with_sizes(with_answers(settings.arguments, options.answers), ranks),
                share=WorkerShare(self.context.info.place, workers, ranks, self.context.info.host_processes),
                leased=self.context.device_id is not None,
                generation_config="vllm" if yaml.generation_config == "none" else "auto",
                adapters=lora_arguments(settings.adapters, yaml.adapters),
            )
        return Llm(
            engine,
            settings.adapters,
            self.parsers,
            settings.chat_template,
            request_templates=yaml.request_chat_template,
            files=files,
        )

    def settings(self) -> EngineSettings:
        """The model, and the arguments of its engine. Called before vLLM starts, in its environment. Raises
        HandlerLoadError."""
        folder, yaml = self.context.model_dir, self.yaml
        return EngineSettings(folder, vllm_arguments(yaml.vllm), packed_adapters(folder, yaml.adapters))

    @staticmethod
    def _tool_parser(template: str | None) -> str:
        return format_of_template(template) if template else DEFAULT.NAME

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Hold one of `maxConcurrent` places. Raises PredictionError 429 where none is free."""
        if self._running >= self.yaml.max_concurrent:
            raise PredictionError(
                OVERLOADED,
                f"The model is overloaded: {self._running} requests are in progress, as many as maxConcurrent allows; "
                "try again later.",
            )
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
