"""The example's training network against a plain NumPy one, and both against the engine's."""

import math
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("mindspore")
load_file = pytest.importorskip("safetensors.numpy").load_file

pytestmark = pytest.mark.mindspore

EXAMPLE = Path(__file__).parents[2] / "examples" / "llama"
CONFIG = msgspec.json.decode((EXAMPLE / "config.json").read_bytes())
TOKENS = [0, 345, 12, 77, 1203, 5, 9, 640, 31, 2, 88]


@pytest.fixture
def example() -> Iterator[None]:
    """Its modules can be imported; later tests do not see them."""
    before = set(sys.modules)
    sys.path.insert(0, str(EXAMPLE))
    yield
    sys.path.remove(str(EXAMPLE))
    for name in set(sys.modules) & {"network", "train", "corpus"} - before:
        del sys.modules[name]


def reference(weights: dict[str, Any], tokens: list[int]) -> Any:
    """The whole sequence at once in NumPy, as `transformers` computes it -> logits [positions, vocab]."""
    heads, kv = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"]
    size, length = CONFIG["hidden_size"] // heads, len(tokens)
    inverse = CONFIG["rope_theta"] ** -(np.arange(0, size, 2) / size)
    angles = np.tile(np.outer(np.arange(length), inverse), 2)
    causal = np.where(np.tril(np.ones((length, length))) > 0, 0, -np.inf)

    def norm(x: Any, name: str) -> Any:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + CONFIG["rms_norm_eps"]) * weights[name]

    def turned(x: Any) -> Any:
        swapped = np.concatenate([-x[..., size // 2 :], x[..., : size // 2]], -1)
        return x * np.cos(angles)[:, None] + swapped * np.sin(angles)[:, None]

    x = weights["model.embed_tokens.weight"][tokens]
    for layer in range(CONFIG["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        w = {name: weights[f"{at}{name}.weight"].T for name in (
            "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
            "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")}  # fmt: skip
        h = norm(x, at + "input_layernorm.weight")
        q = turned((h @ w["self_attn.q_proj"]).reshape(length, heads, size))
        k = turned((h @ w["self_attn.k_proj"]).reshape(length, kv, size)).repeat(heads // kv, 1)
        v = (h @ w["self_attn.v_proj"]).reshape(length, kv, size).repeat(heads // kv, 1)
        scores = np.einsum("phd,thd->hpt", q, k) / math.sqrt(size) + causal
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hpt,thd->phd", scores / scores.sum(-1, keepdims=True), v).reshape(length, -1)
        x = x + mixed @ w["self_attn.o_proj"]
        h = norm(x, at + "post_attention_layernorm.weight")
        gate = h @ w["mlp.gate_proj"]
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w["mlp.up_proj"])) @ w["mlp.down_proj"]
    return norm(x, "model.norm.weight") @ weights["model.embed_tokens.weight"].T


def committed() -> dict[str, Any]:
    return {name: array.astype(np.float32) for name, array in load_file(EXAMPLE / "model.safetensors").items()}


def test_what_is_trained_is_what_transformers_computes(example: None) -> None:
    from mindspore import Tensor

    network, train = import_module("network"), import_module("train")
    llama = network.Llama(train.CONFIG)
    weights = committed()
    for parameter in llama.get_parameters():
        array = weights[parameter.name]
        flat = array.ndim == 1 or "embed_tokens" in parameter.name
        parameter.set_data(Tensor(np.ascontiguousarray(array if flat else array.T)))
    logits = llama(Tensor(np.array([TOKENS, TOKENS[::-1]], np.int32))).asnumpy().reshape(2, len(TOKENS), -1)
    assert np.abs(logits[0] - reference(weights, TOKENS)).max() < 1e-4
    assert np.abs(logits[1] - reference(weights, TOKENS[::-1])).max() < 1e-4


def test_what_is_served_is_what_was_trained() -> None:
    from msx_core.config import parse_model_config
    from msx_llm.limits import limits_of
    from msx_llm.models.registry import read_config
    from msx_llm.runner import load_runner
    from msx_sdk.mindspore import Parallel, collectives

    alone = Parallel()
    collectives.register(alone.world_group, (0,))
    yaml = parse_model_config({"slotBuckets": [1], "prefillBuckets": [16], "maxTotalTokens": 64})[0]
    limits = limits_of(yaml, 256, 4096, 1 << 26)
    runner = load_runner(EXAMPLE, read_config(EXAMPLE), lambda weights: limits, alone)
    got = runner.prefill(0, 0, TOKENS, all_logits=True)
    assert np.abs(got - reference(committed(), TOKENS)).max() < 1e-4


def test_the_files_beside_the_weights_are_those_that_training_writes(example: None) -> None:
    train = import_module("train")
    for name, made in (("config.json", train.model_config()), ("tokenizer_config.json", train.tokenizer_config())):
        assert msgspec.json.decode((EXAMPLE / name).read_bytes()) == made


def test_a_step_of_training_learns(example: None) -> None:
    from mindspore import Tensor

    network, train = import_module("network"), import_module("train")
    llama = network.Llama(train.CONFIG)
    train.initialise(llama, 0)
    step = train.make_step(llama, [1e-2] * 4)
    tokens = Tensor(np.array([TOKENS[:-1]], np.int32))
    targets = Tensor(np.array([TOKENS[1:]], np.int32))
    losses = [float(step(tokens, targets)) for _ in range(4)]
    assert losses[-1] < losses[0] - 1
