"""A language model that says the prompt again, a word a token; of messages the last one.

It keeps to a JSON schema or a choice by making up the smallest text that fits. First words of a prompt that it obeys:
`fail` (before the first token), `fail-later` and `crash` (after two), `full` (429), `hang` (after the first token),
`pause` (for PAUSE seconds before the first and the second one), `pause-fail` (before the first, and then fails).
`describe()` tells how many requests run, and how many were cancelled. Its log-probabilities are made up.
"""

import asyncio
import json
import math
import os
import re
import struct
import zlib

from msx_sdk import InvalidInput, PredictionError
from msx_sdk.generation import (
    Capabilities,
    EmbedReply,
    GenerateDelta,
    TextSpan,
    Token,
    TokenizeReply,
    TopToken,
    Usage,
)
from msx_sdk.text_generation import TextGenerationHandler

CONTEXT = 2000
PAUSE = 0.4
WORD = re.compile(r"\s*\S+|\s+$")


class Parrot(TextGenerationHandler):
    def initialize(self, context):
        super().initialize(context)
        self.words = {}
        self.running = self.cancelled = 0

    def capabilities(self):
        return Capabilities(
            generate=True,
            chat=True,
            tokenize=True,
            embed=True,
            constraints=("json_schema", "json_object", "regex", "choice"),
            model_id="tests/parrot",
            max_total_tokens=CONTEXT,
            max_input_tokens=CONTEXT - 1,
            max_concurrent=64,
            max_best_of=4,
            embedding_size=4,
        )

    async def generate(self, request, context):
        self.running += 1
        try:
            async for delta in self.said(request):
                yield delta
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            raise
        finally:
            self.running -= 1

    async def said(self, request):
        params, prompt = request.params, self.text_of(request)
        ids = self.split(prompt)
        if len(ids) + (1 if params.fit_context else params.max_tokens or 1) > CONTEXT:
            raise InvalidInput(f"max_tokens: {len(ids)} tokens of prompt leave no room for {params.max_tokens}")
        order = prompt.split()[0] if prompt.split() else ""
        if order == "full":
            raise PredictionError(429, "the waiting queue is full: maxWaiting is 0")
        if order in ("pause", "pause-fail"):
            await asyncio.sleep(PAUSE)
        if order in ("fail", "pause-fail"):
            raise RuntimeError("told to")
        if order == "priority":
            prompt = f"{order} {request.priority}"
        texts = [self.plan(prompt, params) for _ in range(params.n)]
        made, told = 0, set()
        for step in range(max(len(tokens) for tokens, _, _ in texts)):
            for index, (tokens, finish, stopped) in enumerate(texts):
                if step >= len(tokens):
                    continue
                made += 1
                last = step == len(tokens) - 1
                if not request.stream and not last:
                    continue
                grown = tokens[step : step + 1] if request.stream else tokens
                yield GenerateDelta(
                    index=index,
                    text="".join(token.text for token in grown if not token.special),
                    tokens=tuple(grown),
                    finish_reason=finish if last else None,
                    stop_reason=stopped if last else None,
                    seed=(params.seed or 7) if last and params.temperature else None,
                    prompt_tokens=self.tokens(ids, params, of_prompt=True)
                    if index not in told and params.prompt_logprobs
                    else (),
                    usage=Usage(prompt=len(ids), completion=made) if self.all_done(texts, index, step) else None,
                )
                told.add(index)
            await asyncio.sleep(0)
            await self.obey(order, step)

    def all_done(self, texts, index, step):
        longest = max(len(tokens) for tokens, _, _ in texts)
        return step == longest - 1 and index == max(i for i, text in enumerate(texts) if len(text[0]) == longest)

    async def obey(self, order, step):
        if order == "hang":
            await asyncio.sleep(3600)
        if order == "pause" and step == 0:
            await asyncio.sleep(PAUSE)
        if order == "fail-later" and step == 1:
            raise RuntimeError("told to")
        if order == "crash" and step == 1:
            os._exit(3)

    def plan(self, prompt, params):
        """The tokens, why they end, and the stop sequence."""
        text = made_up(params.constraint) if params.constraint else prompt
        finish, stopped = "eos", None
        for stop in params.stop:
            if (place := text.find(stop)) >= 0:
                text, finish, stopped = text[: place + len(stop) * params.keep_stop], "stop", stop
        tokens = list(self.tokens(self.split(text), params))
        if params.max_tokens is not None and len(tokens) > params.max_tokens:
            return tokens[: params.max_tokens], "length", None
        if finish == "eos":
            tokens.append(Token(id=0, text="</s>", special=True, logprob=-0.125, bytes=b"</s>"))
        return tokens or [Token(id=0, text="", special=True, logprob=0.0)], finish, stopped

    def tokens(self, ids, params, of_prompt=False):
        return tuple(self.token(place, id, params, of_prompt) for place, id in enumerate(ids))

    def token(self, place, id, params, of_prompt):
        text = self.words[id]
        asked = params.logprobs is not None or params.prompt_logprobs
        logprob = -(place + 1) / 8 if asked and not (of_prompt and place == 0) else None
        most = max(params.logprobs or 0, params.prompt_top if of_prompt else 0)
        top = tuple(TopToken(id=id + k, text=text + "!" * k, logprob=-(place + 1) / 8 - k) for k in range(most))
        rank = 1 if of_prompt and place else None
        return Token(id=id, text=text, logprob=logprob, bytes=text.encode() if asked else b"", top=top, rank=rank)

    async def tokenize(self, request, context):
        if request.ids is not None:
            return TokenizeReply(tokens=[], text=self.decode(request.ids))
        text = self.text_of(request)
        spans, start = [], 0
        for id in self.split(text):
            word = self.words[id]
            spans.append(TextSpan(id=id, text=word, start=start, stop=start + len(word)))
            start += len(word)
        return TokenizeReply(tokens=spans, text=text)

    async def embed(self, request, context):
        text = request.input if isinstance(request.input, str) else self.decode(request.input)
        if text == "fail":
            raise RuntimeError("told to")
        numbers = [float(len(text)), 1.0, 0.0, -1.0][: request.dimensions or 4]
        size = math.sqrt(sum(number * number for number in numbers))
        packed = struct.pack(f"<{len(numbers)}f", *(number / size for number in numbers))
        return EmbedReply(embedding=packed, prompt_tokens=len(self.split(text)))

    def describe(self):
        return {"running": self.running, "cancelled": self.cancelled}

    def text_of(self, request):
        if request.messages is not None:
            return request.messages[-1]["content"]
        return request.prompt if isinstance(request.prompt, str) else self.decode(request.prompt)

    def decode(self, ids):
        return "".join(self.words.get(id, f" <{id}>") for id in ids)

    def split(self, text):
        ids = []
        for word in WORD.findall(text):
            id = zlib.crc32(word.encode()) % 50_000 + 1
            self.words[id] = word
            ids.append(id)
        return ids


def made_up(constraint):
    if constraint.kind == "choice":
        return json.loads(constraint.value)[0]
    if constraint.kind == "regex":
        return "7"
    schema = json.loads(constraint.value or "{}")
    return json.dumps(instance(schema, schema))


def instance(schema, root):
    if "$ref" in schema:
        target = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        return instance(target, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return instance(schema["anyOf"][0], root)
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: instance(part, root) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items", {}), root)] * schema.get("minItems", 1)
    return {"string": "polly wants", "integer": 7, "number": 0.5, "boolean": True}.get(kind)
