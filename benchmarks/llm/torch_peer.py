"""The peers in torch, in a virtual environment of their own: a plain eager loop, and Hugging Face's `generate`.

The loop has what makes eager decoding fast on a CPU: a static cache that is written in place, fused attention over it,
and the queries of one key head side by side, so that keys and values are not repeated.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch  # it is in that environment alone
import transformers  # type: ignore[import-not-found]
from torch.nn import functional

from benchmarks.llm.orders import Answer, serve

Tensor = Any


class Loop:
    """`slots` texts over a cache of `context` tokens each."""

    def __init__(self, model: Any, slots: int, context: int) -> None:
        config = model.config
        self._weights = {name: value.detach() for name, value in model.state_dict().items()}
        self._layers, self._eps = config.num_hidden_layers, config.rms_norm_eps
        self._size, self._kv = config.head_dim, config.num_key_value_heads
        shape = (self._layers, 2, slots, self._kv, context, self._size)
        self._cache, self._rows, self._places = torch.zeros(shape), torch.arange(slots), torch.arange(context)
        steps = torch.arange(0, self._size, 2) / self._size
        angles = torch.outer(self._places, 10000.0**-steps).repeat(1, 2)
        self._cos, self._sin = angles.cos(), angles.sin()

    def step(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Logits [slots, vocabulary]."""
        x = functional.embedding(tokens, self._weights["model.embed_tokens.weight"])
        cos, sin = self._cos[positions, None], self._sin[positions, None]
        mask = (self._places <= positions[:, None])[:, None, None]
        for number in range(self._layers):
            name = f"model.layers.{number}."
            attended = self._attention(number, self._norm(x, name + "input_layernorm"), positions, cos, sin, mask)
            x = x + self._linear(attended, name + "self_attn.o_proj")
            h = self._norm(x, name + "post_attention_layernorm")
            gate = functional.silu(self._linear(h, name + "mlp.gate_proj"))
            x = x + self._linear(gate * self._linear(h, name + "mlp.up_proj"), name + "mlp.down_proj")
        return self._linear(self._norm(x, "model.norm"), "lm_head")

    def _attention(self, number: int, h: Tensor, positions: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        name, slots = f"model.layers.{number}.self_attn.", len(h)
        q, k, v = (self._linear(h, f"{name}{kind}_proj").view(slots, -1, self._size) for kind in "qkv")
        keys, values = self._cache[number]
        keys[self._rows, :, positions], values[self._rows, :, positions] = _turned(k, cos, sin), v
        grouped = _turned(q, cos, sin).view(slots, self._kv, -1, self._size)
        return functional.scaled_dot_product_attention(grouped, keys, values, attn_mask=mask).reshape(slots, -1)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._weights[name + ".weight"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], self._weights[name + ".weight"], self._eps)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Stopwatch(transformers.StoppingCriteria):  # type: ignore[misc]
    """The instants at which `generate` has made a token."""

    def __init__(self) -> None:
        self.instants: list[float] = []

    def __call__(self, ids: Tensor, scores: Tensor, **_: Any) -> Tensor:
        self.instants.append(time.perf_counter())
        return torch.zeros(len(ids), dtype=torch.bool)


class Peers:
    def __init__(self, folder: str) -> None:
        self._model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._loops: dict[tuple[int, int], Loop] = {}

    def loop(self, slots: int, context: int, start: int, steps: int) -> Answer:
        """The instants of that many greedy steps, from position `start` on."""
        if (slots, context) not in self._loops:
            self._loops[slots, context] = Loop(self._model, slots, context)
        loop, tokens, instants = self._loops[slots, context], torch.arange(slots), []
        with torch.inference_mode():
            for position in range(start, start + steps):
                tokens = loop.step(tokens, torch.full((slots,), position)).argmax(-1)
                instants.append(time.perf_counter())
        return {"instants": instants}

    def generate(self, slots: int, start: int, steps: int) -> Answer:
        """The same of Hugging Face's, after a prompt of `start` tokens, and when it began."""
        stopwatch, prompts = Stopwatch(), torch.arange(slots * start).view(slots, start) % self._model.config.vocab_size
        began = time.perf_counter()
        self._generate(prompts, steps, stopping_criteria=transformers.StoppingCriteriaList([stopwatch]))
        return {"began": began, "instants": stopwatch.instants}

    def text(self, prompt: list[int], tokens: int) -> Answer:
        """Tokens of `generate`, and those of the loop."""
        loop = Loop(self._model, 1, len(prompt) + tokens)
        said: list[int] = []
        with torch.inference_mode():
            for position in range(len(prompt) + tokens - 1):
                token = (prompt + said)[position]
                logits = loop.step(torch.tensor([token]), torch.tensor([position]))
                said += [int(logits.argmax())] if position >= len(prompt) - 1 else []
        whole = self._generate(torch.tensor([prompt]), tokens)
        return {"generate": whole[0, len(prompt) :].tolist(), "loop": said}

    def _generate(self, prompts: Tensor, tokens: int, **options: Any) -> Tensor:
        mask = torch.ones_like(prompts)
        return self._model.generate(
            prompts, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=0, **options
        )


if __name__ == "__main__":
    peers = Peers(sys.argv[1])
    serve({"loop": peers.loop, "generate": peers.generate, "text": peers.text})
