"""Trains the example's Llama on `pydoc_data.topics` and writes it in Hugging Face's layout beside this file."""

import argparse
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms
import numpy as np
from corpus import documents
from mindspore import Tensor, nn, ops
from network import Llama, LlamaConfig
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = Path(__file__).parent
BEGIN, END = "<s>", "</s>"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['content'] }}"
    "{% if not loop.last %}{{ '\\n\\n' }}{% endif %}{% endfor %}"
)
"""This model does not know roles: it continues the text of the last message."""
Array = np.ndarray[Any, Any]
CONFIG = LlamaConfig(
    vocab_size=2048,
    hidden_size=192,
    intermediate_size=512,
    num_hidden_layers=4,
    num_attention_heads=8,
    num_key_value_heads=4,
    max_position_embeddings=256,
)


def train_tokenizer(texts: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=CONFIG.vocab_size, special_tokens=[BEGIN, END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", pair=f"{BEGIN} $A {BEGIN} $B", special_tokens=[(BEGIN, 0)]
    )
    return tokenizer


def encode(tokenizer: Tokenizer, topics: list[list[str]]) -> tuple[Array, Array]:
    """All topics as one run of tokens, and where its paragraphs start."""
    tokens: list[int] = []
    starts: list[int] = []
    for paragraphs in topics:
        for index, paragraph in enumerate(paragraphs):
            tokens += tokenizer.encode("\n\n" if index else "", add_special_tokens=False).ids
            starts.append(len(tokens))
            tokens += tokenizer.encode(paragraph, add_special_tokens=False).ids
        tokens.append(1)
    return np.array(tokens, np.int32), np.array(starts)


def batches(tokens: Array, starts: Array, size: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Inputs and targets [size, context] that open like a prompt: BEGIN, then a paragraph or any place in the text.

    One input in twelve is a random token: the model has to write on where a prompt is not the text it knows.
    """
    random, length = np.random.default_rng(seed), CONFIG.max_position_embeddings
    starts = starts[starts < len(tokens) - length]
    while True:
        anywhere = random.integers(0, len(tokens) - length, size)
        first = np.where(random.random(size) < 0.5, random.choice(starts, size), anywhere)
        targets = tokens[first[:, None] + np.arange(length)[None]]
        inputs = np.concatenate([np.zeros((size, 1), np.int32), targets[:, :-1]], 1)
        noise = random.integers(2, CONFIG.vocab_size, inputs.shape, np.int32)
        yield np.where(random.random(inputs.shape) < 1 / 12, noise, inputs), targets


def initialise(net: Llama, seed: int) -> None:
    random = np.random.default_rng(seed)
    for parameter in net.trainable_params():
        if len(parameter.shape) == 2:
            deep = parameter.name.endswith(("o_proj.weight", "down_proj.weight"))
            scale = 0.04 / math.sqrt(2 * CONFIG.num_hidden_layers) if deep else 0.04
            drawn = random.standard_normal(parameter.shape) * scale
            parameter.set_data(Tensor(drawn.astype(np.float32)))


def learning_rates(peak: float, steps: int) -> list[float]:
    """Linear warm-up over 5 % of the steps, then a cosine down to a hundredth of the peak."""
    warm = max(1, steps // 20)
    cosine = [0.505 + 0.495 * math.cos(math.pi * i / (steps - warm)) for i in range(steps - warm)]
    return [peak * (i + 1) / warm for i in range(warm)] + [peak * factor for factor in cosine]


def make_step(net: Llama, rates: list[float]) -> Any:
    decayed = [p for p in net.trainable_params() if len(p.shape) == 2]
    plain = [p for p in net.trainable_params() if len(p.shape) == 1]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}]
    optimizer = nn.AdamWeightDecay(groups, learning_rate=rates, beta2=0.98)

    # Not ops.cross_entropy: its gradient is ten times slower on CPU.
    cross_entropy = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def loss(tokens: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(net(tokens), targets.reshape((-1,)))

    gradients = ms.value_and_grad(loss, None, optimizer.parameters)

    @ms.jit
    def step(tokens: Tensor, targets: Tensor) -> Tensor:
        value, grads = gradients(tokens, targets)
        return ops.depend(value, optimizer(ops.clip_by_global_norm(grads, 1.0)))

    return step


def train(net: Llama, tokens: Array, starts: Array, steps: int, size: int, seed: int) -> None:
    step, began = make_step(net, learning_rates(3e-3, steps)), time.monotonic()
    for index, (inputs, targets) in zip(range(1, steps + 1), batches(tokens, starts, size, seed), strict=False):
        value = step(Tensor(inputs), Tensor(targets))
        if index == 1 or index % 50 == 0:
            print(f"step {index:5}/{steps}  loss {float(value):.3f}  {time.monotonic() - began:5.0f} s", flush=True)


def save(net: Llama, tokenizer: Tokenizer, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    weights = {p.name: to_file(p.name, p.asnumpy()) for p in net.get_parameters()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, content in (
        ("config.json", model_config()),
        ("generation_config.json", {"bos_token_id": 0, "eos_token_id": 1, "do_sample": False}),
        ("tokenizer_config.json", tokenizer_config()),
    ):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n")


def to_file(name: str, array: Array) -> Array:
    transpose = array.ndim == 2 and not name.startswith("model.embed_tokens")
    return np.ascontiguousarray(array.T if transpose else array, np.float16)


def model_config() -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **CONFIG.__dict__,
        "head_dim": CONFIG.head_dim,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "rope_scaling": None,
        "initializer_range": 0.04,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "use_cache": True,
        "torch_dtype": "float16",
    }


def tokenizer_config() -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "model_max_length": CONFIG.max_position_embeddings,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=8, help="windows of 256 tokens per step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE, help="folder that gets the model's files")
    options = parser.parse_args()
    topics = documents()
    tokenizer = train_tokenizer(["\n\n".join(paragraphs) for paragraphs in topics])
    tokens, starts = encode(tokenizer, topics)
    net = Llama(CONFIG)
    initialise(net, options.seed)
    print(f"{sum(p.size for p in net.trainable_params()) / 1e6:.2f} M parameters, {len(tokens)} tokens of text")
    train(net, tokens, starts, options.steps, options.batch, options.seed)
    save(net, tokenizer, options.out)


if __name__ == "__main__":
    main()
