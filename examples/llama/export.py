"""Exports the Llama of this folder as two MindIR files whose caches are inputs and outputs: one for prompts, one for a
token at a time. `python export.py [folder]` takes seconds.

Shapes are fixed: B texts in a step (SLOTS) and one in a prompt, P tokens of a prompt, C positions of a cache, L layers,
D the size of a head.
"""

import json
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from network import Attention, Layer, Llama, LlamaConfig

HERE = Path(__file__).parent
SLOTS, PROMPT, CONTEXT = 4, 64, 256


class Cached(nn.Cell):
    """Base of both graphs: the trained layers, and one step of attention over keys and values that are given."""

    def __init__(self, llama: Llama) -> None:
        super().__init__()
        self.model, self.cos, self.sin = llama.model, llama.cos[:CONTEXT], llama.sin[:CONTEXT]
        self.places = Tensor(np.arange(CONTEXT, dtype=np.int32))

    def attend(self, layer: Attention, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """q [B, heads, P, D], keys and values [B, kv, C, D], mask [B, 1, P, C] additive -> [B*P, hidden]"""
        batch, _, length, size = q.shape
        grouped, per_kv = (batch * layer.kv, layer.group * length, -1), (batch * layer.kv, -1, size)
        scores = layer.scores(q.reshape(grouped), keys.reshape(per_kv)).reshape((batch, layer.heads, length, -1))
        mixed = layer.mix(layer.softmax(scores + mask).reshape(grouped), values.reshape(per_kv))
        mixed = mixed.reshape((batch, layer.heads, length, size)).transpose((0, 2, 1, 3))
        return layer.o_proj(mixed.reshape((batch * length, layer.heads * size)))

    def finish(self, layer: Layer, x: Tensor, mixed: Tensor) -> Tensor:
        x = x + mixed
        return x + layer.mlp(layer.post_attention_layernorm(x))


class Prefill(Cached):
    """tokens [1, P], valid_length [1] -> logits [1, vocab] of the last token, keys and values [L, 1, kv, C, D]"""

    def __init__(self, llama: Llama) -> None:
        super().__init__(llama)
        self.mask = llama.causal[:PROMPT, :PROMPT].reshape((1, 1, PROMPT, PROMPT))

    def construct(self, tokens: Tensor, valid_length: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        cos, sin = self.cos[:PROMPT], self.sin[:PROMPT]
        x = self.model.embed_tokens(tokens.reshape((-1,)))
        all_keys, all_values = (), ()
        for layer in self.model.layers:
            own, h = layer.self_attn, layer.input_layernorm(x)
            q = own.rotate(own.heads_first(own.q_proj(h), 1, PROMPT, own.heads), cos, sin) * own.scale
            keys = own.rotate(own.heads_first(own.k_proj(h), 1, PROMPT, own.kv), cos, sin)
            values = own.heads_first(own.v_proj(h), 1, PROMPT, own.kv)
            x = self.finish(layer, x, self.attend(own, q, keys, values, self.mask))
            room = ops.zeros((1, own.kv, CONTEXT - PROMPT, own.size), ms.float32)
            all_keys, all_values = (*all_keys, ops.cat((keys, room), 2)), (*all_values, ops.cat((values, room), 2))
        last = ops.gather(self.model.norm(x), valid_length - 1, 0)
        return self.model.embed_tokens.logits(last), ops.stack(all_keys), ops.stack(all_values)


class Increment(Cached):
    """tokens [B, 1], position [B], keys and values [L, B, kv, C, D] -> logits [B, vocab], keys and values"""

    def construct(
        self, tokens: Tensor, position: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        cos = ops.gather(self.cos, position, 0).reshape((SLOTS, 1, 1, -1))
        sin = ops.gather(self.sin, position, 0).reshape((SLOTS, 1, 1, -1))
        place, column = self.places.reshape((1, 1, CONTEXT, 1)), position.reshape((SLOTS, 1, 1, 1))
        here = ops.equal(place, column).astype(ms.float32)
        mask = (place > column).astype(ms.float32).reshape((SLOTS, 1, 1, CONTEXT)) * -1e9
        x = self.model.embed_tokens(tokens.reshape((-1,)))
        all_keys, all_values = (), ()
        for number, layer in enumerate(self.model.layers):
            own, h = layer.self_attn, layer.input_layernorm(x)
            q = own.rotate(own.heads_first(own.q_proj(h), SLOTS, 1, own.heads), cos, sin) * own.scale
            k = own.rotate(own.heads_first(own.k_proj(h), SLOTS, 1, own.kv), cos, sin)
            v = own.heads_first(own.v_proj(h), SLOTS, 1, own.kv)
            new_keys = keys[number] * (1 - here) + k * here
            new_values = values[number] * (1 - here) + v * here
            x = self.finish(layer, x, self.attend(own, q, new_keys, new_values, mask))
            all_keys, all_values = (*all_keys, new_keys), (*all_values, new_values)
        logits = self.model.embed_tokens.logits(self.model.norm(x))
        return logits, ops.stack(all_keys), ops.stack(all_values)


def trained() -> Llama:
    """The network with this folder's weights."""
    ms.runtime.launch_blocking()  # of small operators: waiting for each is faster than a queue of them
    known = json.loads((HERE / "config.json").read_text())
    llama = Llama(LlamaConfig(**{name: known[name] for name in LlamaConfig.__dataclass_fields__ if name in known}))
    weights = ms.load_checkpoint(str(HERE / "model.safetensors"), format="safetensors")
    for name, parameter in llama.parameters_and_names():
        array = weights[name].asnumpy().astype(np.float32)
        parameter.set_data(Tensor(array.T.copy() if name.endswith("proj.weight") else array))
    llama.set_train(False)
    return llama


def greedy(llama: Llama, prompts: list[list[int]], count: int) -> list[list[int]]:
    """Continue the prompts with the network itself: whole sequences, no cache. Padding is behind what a token sees."""
    texts = [list(prompt) for prompt in prompts]
    for _ in range(count):
        longest = max(map(len, texts))
        padded = [text + [0] * (longest - len(text)) for text in texts]
        logits = llama(Tensor(padded, ms.int32)).asnumpy().reshape(len(texts), longest, -1)
        for text, rows in zip(texts, logits, strict=True):
            text.append(int(rows[len(text) - 1].argmax()))
    return [text[len(prompt) :] for text, prompt in zip(texts, prompts, strict=True)]


def write(file: Path, graph: nn.Cell, *inputs: Tensor) -> None:
    file.unlink(missing_ok=True)  # MindSpore writes it without permission to write
    ms.export(graph, *inputs, file_name=str(file), file_format="MINDIR")


def export(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    llama = trained()
    kv, size, layers = llama.model.layers[0].self_attn.kv, llama.cos.shape[-1], len(llama.model.layers)
    cache = Tensor(np.zeros((layers, SLOTS, kv, CONTEXT, size), np.float32))
    prompt, length = Tensor(np.zeros((1, PROMPT), np.int32)), Tensor(np.ones(1, np.int32))
    token, position = Tensor(np.zeros((SLOTS, 1), np.int32)), Tensor(np.zeros(SLOTS, np.int32))
    ms.export(Prefill(llama), prompt, length, file_name=str(folder / "prefill.mindir"), file_format="MINDIR")
    ms.export(
        Increment(llama),
        token,
        position,
        cache,
        cache,
        file_name=str(folder / "increment.mindir"),
        file_format="MINDIR",
    )


if __name__ == "__main__":
    export(Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "build"))
