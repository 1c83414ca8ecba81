"""One engine of vLLM: started, asked, watched and shut down."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import vllm
from vllm.platforms import current_platform
from vllm.usage.usage_lib import UsageContext
from vllm.v1.engine.async_llm import AsyncLLM

from msx_core.config.vllm_parallel import SIZES
from msx_core.json_schema import UNHELD
from msx_sdk.errors import HandlerLoadError, InvalidInput
from msx_sdk.generation import (
    ClassifyRequest,
    EmbedRequest,
    GenerateDelta,
    GenerateRequest,
    SamplingDefaults,
    SamplingParams,
)
from msx_vllm.checks import check_sampling, room_of
from msx_vllm.cores import WorkerShare
from msx_vllm.deltas import ParsesTexts
from msx_vllm.engine.arguments import engine_arguments
from msx_vllm.engine.beams import BeamPrompt, BeamText, EngineBeams
from msx_vllm.engine.failures import told
from msx_vllm.engine.images import EngineImages
from msx_vllm.engine.loras import Loras
from msx_vllm.engine.pooling import PooledTexts
from msx_vllm.engine.prompts import EnginePrompts
from msx_vllm.engine.sampling import GUIDANCE, sampling_params
from msx_vllm.engine.series import EngineSeries
from msx_vllm.engine.sleep import EngineSleep
from msx_vllm.outputs import EngineOutput
from msx_vllm.parser_names import ParserNames
from msx_vllm.platforms import settle
from msx_vllm.pooling_files import NO_FILES, PoolingFiles

if TYPE_CHECKING:
    from msx_vllm.engine.parsers import EngineParsers

DEFAULTS: dict[str, Any] = {
    "scheduling_policy": "priority",
    "structured_outputs_config": {"backend": GUIDANCE},
    "limit_mm_per_prompt": {"audio": 0, "video": 0},
    "mm_processor_cache_gb": 0,
}
"""Where `vllm:` does not say another: requests have priorities, the grammars of MSX's own engine are understood, no
memory is kept for media that no request has, and none fills up with images that are not in work."""

WARM_UP = "warm-up"
"""The id of the first requests."""
WARM_UPS = (
    SamplingParams(max_tokens=1, temperature=0, logprobs=0),
    SamplingParams(max_tokens=1, temperature=1),
)
"""vLLM compiles functions for scores and for draws when they are first asked for, also with `enforce_eager`: on a
processor that takes from seconds to minutes, in which no text goes on."""
DEFAULTED = frozenset(SamplingDefaults.__struct_fields__)


def started(
    folder: Path,
    section: Mapping[str, Any],
    *,
    share: WorkerShare,
    leased: bool,
    generation_config: str,
    adapters: Mapping[str, Any],
) -> AsyncLLM:
    """An engine whose processes run, on the running loop, with the defaults of vLLM's server: of texts and tokens of a
    step they depend on who asks. `share` and `leased`: as of `settle`; `adapters`: as of `lora_arguments`. Raises
    HandlerLoadError, and what vLLM raises."""
    decided = {"model": str(folder), "served_model_name": None, "generation_config": generation_config}
    arguments = engine_arguments({**DEFAULTS, **adapters, **section}, decided)
    settle(arguments, section, share, current_platform, leased=leased)
    return AsyncLLM.from_engine_args(arguments, usage_context=UsageContext.OPENAI_API_SERVER)


class Llm:
    """Texts by one engine. `longest` prompt and whole `context` in tokens."""

    def __init__(
        self,
        engine: Any,
        adapters: Mapping[str, Path],
        parsers: ParserNames,
        chat_template: str | None = None,
        *,
        request_templates: bool = False,
        files: PoolingFiles = NO_FILES,
    ) -> None:
        """Raises HandlerLoadError for a parser that vLLM does not know."""
        self._engine, self._config = engine, engine.model_config
        self.context: int = engine.model_config.max_model_len
        self.longest = self.context - 1
        self.vocab_size: int = engine.model_config.get_vocab_size()
        self.tokenizer = engine.get_tokenizer()
        self.images = EngineImages(engine)
        self.prompts = EnginePrompts(
            engine, self.context, self.images, chat_template, request_templates=request_templates
        )
        self.series = EngineSeries(engine.vllm_config.cache_config.num_gpu_blocks or 0)
        self.loras = Loras(engine, adapters)
        self.pooling = PooledTexts(engine, self.context, files)
        self.sleep = EngineSleep(engine)
        self.tasks: frozenset[str] = frozenset()
        self._beams = EngineBeams(engine)
        self._parsers = _parsers(engine, parsers)
        self._adapts = engine.vllm_config.lora_config is not None
        self._constrained_by: str = engine.vllm_config.structured_outputs_config.backend
        self._drafts = engine.vllm_config.speculative_config is not None
        self._has_priorities = engine.vllm_config.scheduler_config.policy == "priority"

    def parsing(self, request: GenerateRequest) -> ParsesTexts | None:
        """None where the server parses the texts. Raises InvalidInput."""
        if self._parsers is None or request.parse is None:
            return None
        return self._parsers.parsing(request, request.parse)

    async def texts(
        self, request: GenerateRequest, texts: int, id: str, parsing: ParsesTexts | None = None
    ) -> AsyncGenerator[EngineOutput, None]:
        """The outputs of a request, which is aborted when the generator is closed. Raises InvalidInput and
        PredictionError."""
        with told(self.context, constrained=request.params.constraint is not None):
            prompt, most, options = await self._prepared(request)
            asked = sampling_params(request.params, texts, most, stream=request.stream, backend=self._constrained_by)
            if parsing is not None and parsing.keeps_special:
                asked.skip_special_tokens = False
            async with aclosing(self._engine.generate(prompt, asked, id, **options)) as outputs:
                async for output in outputs:
                    yield output

    async def best_texts(
        self, request: GenerateRequest, id: str, parsing: ParsesTexts | None = None
    ) -> AsyncGenerator[GenerateDelta, None]:
        """The whole texts of a beam search, the best first. Raises InvalidInput and PredictionError."""
        if request.images:
            raise InvalidInput("use_beam_search: not together with images; leave one of them out")
        with told(self.context):
            prompt, most, options = await self._prepared(request)
            ids = tuple(prompt["prompt_token_ids"])
            begun = BeamPrompt(ids, most or self.context - len(ids), options)
            async for delta in self._beams.search(request, begun, id):
                if parsing is not None:
                    delta.message = parsing.message(BeamText.of(delta), list(ids), stream=False)
                yield delta

    async def _prepared(self, request: GenerateRequest) -> tuple[Any, int | None, dict[str, Any]]:
        """The prompt, the most tokens of its text, and what vLLM is told with it. Raises InvalidInput and
        PredictionError."""
        check_sampling(request.params, drafts=self._drafts, adapts=self._adapts)
        adapter = await self.loras.chosen(request)
        prompt = await self.prompts.render(request)
        most = room_of(request.params, len(prompt["prompt_token_ids"]), self.context)
        priority = request.priority if self._has_priorities else 0
        return prompt, most, {"lora_request": adapter, "priority": priority}

    @property
    def unheld_keywords(self) -> tuple[str, ...]:
        """Keywords of schemas that are ignored."""
        return UNHELD if self._constrained_by == GUIDANCE else ()

    @property
    def is_dead(self) -> bool:
        return bool(self._engine.errored)

    @property
    def sampling(self) -> SamplingDefaults:
        """The model's defaults, as vLLM reads them from generation_config.json."""
        found = self._config.get_diff_sampling_param()
        return SamplingDefaults(**{name: value for name, value in found.items() if name in DEFAULTED})

    @property
    def model_type(self) -> str:
        return str(self._config.hf_config.model_type)

    @property
    def concurrent_texts(self) -> int:
        """Texts of one step, at most."""
        return int(self._engine.vllm_config.scheduler_config.max_num_seqs)

    def describe(self) -> dict[str, Any]:
        """The engine's settings that follow from the model and the machine."""
        cache, parallel = self._engine.vllm_config.cache_config, self._engine.vllm_config.parallel_config
        return {
            "vllm_version": vllm.__version__,
            "dtype": str(self._config.dtype).removeprefix("torch."),
            "context_length": self.context,
            "concurrent_texts": self.concurrent_texts,
            "kv_cache_memory_bytes": cache.kv_cache_memory_bytes,
            "device": current_platform.device_type,
            **{name: size for name in SIZES if (size := getattr(parallel, name)) > 1},
        }

    async def begin(self) -> None:
        """Ask for the `tasks` of the model, and work once: what the first request would wait for is there afterwards.
        Raises HandlerLoadError for a model that neither writes, nor makes vectors or scores."""
        self.tasks = frozenset(await self._engine.get_supported_tasks())
        await self.loras.begin()
        if "generate" in self.tasks:
            for params in WARM_UPS:
                await self._discard(GenerateRequest(prompt=(0,), params=params, stream=False))
        elif "embed" in self.tasks:
            await self.pooling.embed(EmbedRequest(input=(0,)), WARM_UP)
        elif "classify" in self.tasks:
            await self.pooling.classify(ClassifyRequest(input=(0,)), WARM_UP)
        else:
            found = ", ".join(sorted(self.tasks)) or "nothing"
            raise HandlerLoadError(f"--handler vllm serves texts, vectors and scores; of this model vLLM makes {found}")

    async def _discard(self, request: GenerateRequest) -> None:
        async for _ in self.texts(request, 1, WARM_UP):
            pass

    def shutdown(self, timeout: float) -> None:
        """Blocks until the processes of the engine have ended, `timeout` seconds at most before they are killed."""
        self.images.close()
        self._engine.shutdown(timeout=timeout)


def _parsers(engine: Any, names: ParserNames) -> "EngineParsers | None":
    """Importing vLLM's parsers takes seconds: only where they are asked for."""
    if not any(names):
        return None
    from msx_vllm.engine.parsers import EngineParsers

    return EngineParsers(engine, names)
