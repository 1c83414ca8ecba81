"""Vectors and scores of texts by a model that vLLM runs as a pooling model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal

import msgspec
import numpy as np
from vllm.pooling_params import PoolingParams
from vllm.renderers.params import TokenizeParams

from msx_core.chat_templates.pair_template import PairText
from msx_sdk.errors import InvalidInput, PredictionError
from msx_sdk.generation import ClassifyReply, ClassifyRequest, EmbedReply, EmbedRequest
from msx_vllm.checks import INPUT, check_ids
from msx_vllm.engine.failures import told
from msx_vllm.pooling_files import PoolingFiles

FAILED = 503
ACTIVATIONS = {"model": None, "files": None, "probability": True, "logit": False}
"""Whether a scale asks for the model's activation; None: as its own files say."""


class PooledTexts:
    """`context`: the most tokens of a text."""

    def __init__(self, engine: Any, context: int, files: PoolingFiles) -> None:
        self._prompts, self._template = files.prompts, files.template
        self._engine, self._renderer, self._config = engine, engine.renderer, engine.model_config
        self._context = context

    @property
    def labels(self) -> tuple[str, ...]:
        named = getattr(self._config.hf_config, "id2label", None) or {}
        return tuple(str(named[number]) for number in sorted(named))

    @property
    def prompts(self) -> tuple[str, ...]:
        """Names of texts that may stand before one."""
        return tuple(self._prompts.texts)

    @property
    def size(self) -> int:
        """Numbers of a vector."""
        return int(self._config.embedding_size)

    async def embed(self, request: EmbedRequest, id: str) -> EmbedReply:
        """Raises InvalidInput and PredictionError."""
        if isinstance(request.input, str):
            text = self._prompts.before(request.prompt_name) + request.input
            request = msgspec.structs.replace(request, input=text)
        elif request.prompt_name is not None:
            raise InvalidInput("prompt_name: only before a text, not before token ids")
        if (request.dimensions or 0) > self.size:
            raise InvalidInput(f"dimensions: {request.dimensions} is more than the {self.size} of this model")
        with told(self._context, INPUT):
            prompt = await self._prompt(request)
            asked = PoolingParams(task="embed", use_activation=request.normalize)
            vector, tokens = await self._pooled(prompt, asked, id)
        if request.dimensions is not None:
            vector = vector[: request.dimensions]
            vector = vector if request.normalize is False else vector / max(float(np.linalg.norm(vector)), 1e-12)
        return EmbedReply(embedding=vector.astype("<f4").tobytes(), prompt_tokens=tokens)

    async def classify(self, request: ClassifyRequest, id: str) -> ClassifyReply:
        """Raises InvalidInput and PredictionError."""
        with told(self._context, INPUT):
            kinds: list[int] | None = None
            if request.pair is None:
                prompt = await self._prompt(request)
            else:
                prompt, kinds = await self._pair(request, request.pair)
            asked = PoolingParams(task="classify", use_activation=ACTIVATIONS[request.scale])
            if kinds is not None:
                asked.extra_kwargs = {"compressed_token_type_ids": kinds.index(1) if 1 in kinds else len(kinds)}
            scores, tokens = await self._pooled(prompt, asked, id)
        return ClassifyReply(scores=tuple(map(float, scores)), prompt_tokens=tokens)

    async def _prompt(self, request: EmbedRequest | ClassifyRequest) -> Any:
        """The text of a request as vLLM's engine takes it."""
        truncate = request.truncate and min(request.truncate, self._context)
        side: Literal["left", "right"] = "left" if request.truncate_left else "right"
        params = TokenizeParams(
            max_total_tokens=self._context,
            truncate_prompt_tokens=truncate,
            truncation_side=side if truncate else None,
        )
        given: dict[str, Any] = {"prompt_token_ids": list(request.input)}
        if isinstance(request.input, str):
            given = {"prompt": request.input}
        (made,) = await self._renderer.render_cmpl_async([given], params)
        check_ids(made["prompt_token_ids"], self._config.get_vocab_size(), INPUT)
        return made

    async def _pair(self, request: ClassifyRequest, second: str) -> tuple[Any, list[int] | None]:
        """Both texts in one prompt, with the kind of each token where the tokenizer tells them apart."""
        if not isinstance(request.input, str):
            raise InvalidInput("input: expected a text beside a second one, not token ids")
        if self._template is not None:
            return await self._joined(
                request, self._templated(request, self._template.text(request.input, second))
            ), None
        if not getattr(self._config, "use_sep_token", True):
            return await self._joined(request, request.input + second), None
        side = {"truncation_side": "left" if request.truncate_left else "right"}
        cut = {"truncation": "longest_first", "max_length": request.truncate} if request.truncate else {}
        made = self._renderer.get_tokenizer()(request.input, second, **cut, **(side if cut else {}))
        prompt = await self._joined(request, list(made["input_ids"]))
        kinds = made.get("token_type_ids")
        return prompt, None if kinds is None else list(kinds)

    def _templated(self, request: ClassifyRequest, pair: PairText) -> list[int]:
        """The tokens of a pair in its template, cut in front of those of its last `kept` characters."""
        if request.truncate_left:
            raise InvalidInput(
                "truncate_left: a template stands around the pairs of this model, which are cut at their end"
            )
        made = self._renderer.get_tokenizer()(pair.text, add_special_tokens=False, return_offsets_mapping=True)
        ids: list[int] = list(made["input_ids"])
        end = sum(begin >= len(pair.text) - pair.kept for begin, _ in made["offset_mapping"])
        over = max(len(ids) - (request.truncate or len(ids)), 0)
        if len(ids) - end < over:
            raise InvalidInput(f"truncate: expected at least {end}: so many tokens stand behind the pair")
        return [*ids[: len(ids) - end - over], *ids[len(ids) - end :]]

    async def _joined(self, request: ClassifyRequest, whole: str | list[int]) -> Any:
        given = ClassifyRequest(
            input=whole if isinstance(whole, str) else tuple(whole),
            truncate=request.truncate if isinstance(whole, str) else None,
            truncate_left=request.truncate_left,
        )
        return await self._prompt(given)

    async def _pooled(self, prompt: Any, asked: PoolingParams, id: str) -> tuple[Any, int]:
        """The numbers that the model makes of a prompt, and how many tokens that has."""
        outputs: AsyncGenerator[Any, None]
        async with aclosing(self._engine.encode(prompt, asked, id)) as outputs:
            async for output in outputs:
                if getattr(output, "error", None) is not None:
                    raise PredictionError(FAILED, f"vLLM failed at this request: {output.error.message}")
                if output.finished:
                    data = np.asarray(output.outputs.data.float().cpu().numpy()).reshape(-1)
                    return data, len(output.prompt_token_ids)
        raise PredictionError(FAILED, "vLLM ended this request without a result")
