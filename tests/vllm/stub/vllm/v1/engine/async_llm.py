"""An engine that writes the letters after the last one of the prompt, and remembers what it was asked."""

from collections.abc import AsyncGenerator, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.exceptions import VLLMValidationError
from vllm.lora.request import LoRARequest
from vllm.pooling_params import PoolingParams
from vllm.renderers.params import ChatParams, TokenizeParams
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers.hf import HfTokenizer
from vllm.usage.usage_lib import UsageContext

VOCABULARY = 128
PLACEHOLDER = "\x02"


def scores(id: int, top: int) -> dict[int, SimpleNamespace]:
    """The token itself is the likeliest."""
    return {id + at: SimpleNamespace(logprob=-0.5 - at, rank=at + 1) for at in range(max(top, 1))}


class Renderer:
    """An image is so many tokens as it is wide, each the placeholder's."""

    def __init__(self, tokenizer: HfTokenizer, images: int) -> None:
        self._tokenizer = tokenizer
        info = SimpleNamespace(allowed_mm_limits={"image": images})
        self.mm_processor = SimpleNamespace(info=info) if images else None
        self.messages: list[dict[str, Any]] = []

    def get_tokenizer(self) -> HfTokenizer:
        return self._tokenizer

    async def render_cmpl_async(
        self, prompts: list[dict[str, Any]], tok_params: TokenizeParams, *, skip_mm_cache: bool = False
    ) -> list[dict[str, Any]]:
        params = tok_params
        return [self._made(prompt, params) for prompt in prompts]

    async def render_messages_async(
        self, messages: list[dict[str, Any]], params: ChatParams
    ) -> tuple[Any, dict[str, Any]]:
        if any(message.get("role") == "bad" for message in messages):
            raise VLLMValidationError("roles must alternate")
        self.messages = messages
        flag = str(params.chat_template_kwargs.get("flag", ""))
        contents = [message["content"] for message in messages]
        parts = [part for one in contents for part in (one if isinstance(one, list) else [{"text": str(one)}])]
        pictures = [part["image_pil"] for part in parts if "image_pil" in part]
        text = "".join(part.get("text", PLACEHOLDER) for part in parts) + flag
        return messages, {"prompt": text, **({"multi_modal_data": {"image": pictures}} if pictures else {})}

    async def render_chat_async(
        self,
        conversations: list[list[dict[str, Any]]],
        chat_params: ChatParams,
        tok_params: TokenizeParams,
        *,
        skip_mm_cache: bool = False,
    ) -> tuple[Any, list[dict[str, Any]]]:
        _, prompt = await self.render_messages_async(conversations[0], chat_params)
        return conversations, [self._made(prompt, tok_params)]

    def _made(self, prompt: dict[str, Any], params: TokenizeParams) -> dict[str, Any]:
        ids = prompt.get("prompt_token_ids")
        ids = self._tokenizer.encode(prompt["prompt"], params.add_special_tokens) if ids is None else ids
        if params.truncate_prompt_tokens is not None:
            ids = ids[-params.truncate_prompt_tokens :]
        if params.max_total_tokens is not None and len(ids) > params.max_total_tokens:
            raise VLLMValidationError("too long", parameter="input_tokens", value=len(ids))
        if pictures := prompt.get("multi_modal_data", {}).get("image"):
            left = iter(pictures)
            ids = [id for one in ids for id in [one] * (next(left).width if one == ord(PLACEHOLDER) else 1)]
        return {"type": "token", "prompt_token_ids": ids}


class AsyncLLM:
    made: list["AsyncLLM"] = []
    tasks: list[str] = ["generate"]
    reads = 0
    """Images of one request that the model reads."""

    def __init__(self, args: AsyncEngineArgs) -> None:
        self.args = args
        self.asked: list[SamplingParams] = []
        self.priorities: list[int] = []
        self.pooled: list[PoolingParams] = []
        self.adapters: list[LoRARequest | None] = []
        self.taken: list[LoRARequest] = []
        self.aborted = 0
        self.errored = False
        self.slept: list[str] = []
        self.ended: float | None = None
        self._tokenizer = HfTokenizer()
        self.renderer = Renderer(self._tokenizer, args.limit_mm_per_prompt.get("image", self.reads))
        self.model_config = SimpleNamespace(
            max_model_len=args.max_model_len,
            enable_sleep_mode=args.enable_sleep_mode,
            model=args.model,
            dtype="torch.float32" if args.dtype == "float32" else "torch.bfloat16",
            hf_config=SimpleNamespace(model_type="llama", id2label={1: "good", 0: "bad"}),
            embedding_size=4,
            multimodal_config=SimpleNamespace(media_io_kwargs={}),
            get_vocab_size=lambda: VOCABULARY,
            max_logprobs=20,
            try_get_generation_config=lambda: {"eos_token_id": [1, 2]},
            get_diff_sampling_param=lambda: {"temperature": 0.5, "max_tokens": 9},
        )
        self.vllm_config = SimpleNamespace(
            speculative_config=args.speculative_config,
            parallel_config=args,
            structured_outputs_config=SimpleNamespace(backend=args.structured_outputs_config.get("backend", "auto")),
            lora_config=SimpleNamespace(max_lora_rank=args.max_lora_rank) if args.enable_lora else None,
            scheduler_config=SimpleNamespace(policy=args.scheduling_policy, max_num_seqs=args.max_num_seqs),
            cache_config=SimpleNamespace(kv_cache_memory_bytes=args.kv_cache_memory_bytes, num_gpu_blocks=10),
        )

    @classmethod
    def from_engine_args(cls, engine_args: AsyncEngineArgs, usage_context: UsageContext) -> "AsyncLLM":
        cls.made.append(cls(engine_args))
        return cls.made[-1]

    def get_tokenizer(self) -> HfTokenizer:
        return self._tokenizer

    async def generate(
        self,
        prompt: dict[str, Any],
        sampling_params: SamplingParams,
        request_id: str,
        *,
        lora_request: LoRARequest | None = None,
        priority: int = 0,
    ) -> AsyncGenerator[SimpleNamespace, None]:
        self.asked.append(sampling_params)
        self.priorities.append(priority)
        self.adapters.append(lora_request)
        ids = prompt["prompt_token_ids"]
        try:
            for output in outputs_of(ids, sampling_params, self._tokenizer):
                yield output
        except GeneratorExit:
            self.aborted += 1
            raise

    async def get_supported_tasks(self) -> tuple[str, ...]:
        return tuple(self.tasks)

    async def add_lora(self, lora_request: LoRARequest) -> bool:
        if "broken" in lora_request.lora_path:
            raise RuntimeError("first line\nits weights do not fit")
        self.taken.append(lora_request)
        return True

    async def encode(
        self, prompt: dict[str, Any], pooling_params: PoolingParams, request_id: str
    ) -> AsyncGenerator[SimpleNamespace, None]:
        """Counts of tokens, and of those of the second text."""
        self.pooled.append(pooling_params)
        ids = prompt["prompt_token_ids"]
        numbers = np.array([len(ids), 3, 0, 4], np.float32)
        data = SimpleNamespace(float=lambda: SimpleNamespace(cpu=lambda: SimpleNamespace(numpy=lambda: numbers)))
        yield SimpleNamespace(prompt_token_ids=ids, finished=True, outputs=SimpleNamespace(data=data), error=None)

    async def sleep(self, level: int = 1) -> None:
        self.slept.append(f"sleep {level}")

    async def wake_up(self, tags: list[str] | None = None) -> bool:
        self.slept.append(f"wake {tags}")
        return True

    async def collective_rpc(self, method: str) -> None:
        self.slept.append(method)

    def shutdown(self, timeout: float | None = None) -> None:
        self.ended = timeout


def outputs_of(prompt: list[int], asked: SamplingParams, tokenizer: HfTokenizer) -> Iterator[SimpleNamespace]:
    count = asked.max_tokens or 3
    ids = [(prompt[-1] + 1 + at) % VOCABULARY for at in range(count)]
    is_stream = asked.output_kind is RequestOutputKind.DELTA
    pieces = [[id] for id in ids] if is_stream else [ids]
    known = None if asked.prompt_logprobs is None else [None, *(scores(id, asked.prompt_logprobs) for id in prompt[1:])]
    for at, piece in enumerate(pieces):
        is_last = at == len(pieces) - 1
        yield SimpleNamespace(
            prompt_token_ids=prompt,
            prompt_logprobs=known if at == 0 else [],
            outputs=[
                SimpleNamespace(
                    index=index,
                    text=tokenizer.decode(piece),
                    token_ids=piece,
                    logprobs=None if asked.logprobs is None else [scores(id, asked.logprobs) for id in piece],
                    cumulative_logprob=None if asked.logprobs is None else float(index),
                    finish_reason="length" if is_last else None,
                    stop_reason=None,
                )
                for index in range(asked.n)
            ],
            finished=is_last,
            metrics=SimpleNamespace(queued_ts=1.0, scheduled_ts=1.5),
            num_cached_tokens=len(prompt) // 2,
        )
