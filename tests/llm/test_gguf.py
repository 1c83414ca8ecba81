"""Models in GGUF files: logits are those of the numbers that their blocks stand for, on the kernels of both devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llm.flat_models import ROUNDING, emulation, make_flat
from tests.llm.gguf_checkpoints import write_gguf
from tests.llm.runners import all_logits, limits, make_runner
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

TOKENS = [(7 * place + place * place) % 60 for place in range(22)]
SHAPE = limits(prefills=(32,), slots=(1,))
EXACT = 3e-5
"""Share of the largest logit."""
LONG = pytest.mark.long
WIDE = {"num_attention_heads": 16, "num_key_value_heads": 4, "hidden_size": 256, "intermediate_size": 256}
"""Blocks of 256 numbers divide its inputs."""
MIXED = {"embed": "Q8_0", "v_proj": "Q8_0", "_proj": "Q4_1"}
FILES: list[Any] = [
    ("llama", "llama", MIXED, {}),
    ("qwen3", "qwen3", {"embed": "Q6_K", "down_proj": "Q6_K", "_proj": "Q4_K"}, WIDE),
    pytest.param("qwen2", "qwen2", {"_proj": "Q4_0"}, {}, marks=LONG),
    pytest.param("llama", "llama", {"embed": "Q8_0", "_proj": "Q8_0"}, {}, marks=LONG),
    pytest.param("llama", "llama", {"up_proj": "Q5_0", "_proj": "Q5_1"}, {}, marks=LONG),
    pytest.param("llama", "llama", {"embed": "Q5_K", "o_proj": "Q4_K", "_proj": "Q5_K"}, WIDE, marks=LONG),
    pytest.param("llama", "llama", {}, {}, marks=LONG),
]


def written(folder: Path, golden: str, kind: str, types: dict[str, str], sizes: dict[str, Any]) -> tuple[Path, Path]:
    ms.runtime.launch_blocking()
    given = {"num_hidden_layers": 1, "layer_types": None, "intermediate_size": 128, "rope_scaling": None, **sizes}
    plain = make_wide(golden, folder / "plain", rope_parameters=None, rope_theta=10_000.0, **given)
    return write_gguf(plain, kind, types, folder)


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize(("golden", "kind", "types", "sizes"), FILES)
def test_logits(
    golden: str, kind: str, types: dict[str, str], sizes: dict[str, Any], device: str, tmp_path: Path
) -> None:
    made, numbers = written(tmp_path, golden, kind, types, sizes)
    wanted = logits(numbers, graphs=False)
    if device == "cpu":
        for graphs in (False, True):
            near(logits(made, graphs), wanted, EXACT)
        return
    with emulation():
        found = all_logits(make_flat("npu", made, "float16", SHAPE), TOKENS, 0, (20,))
    near(found, wanted, 4 * ROUNDING["float16"])  # models of 256 numbers a token are rounded so without blocks, too


def logits(folder: Path, graphs: bool) -> Any:
    runner = make_runner("cpu", SHAPE, folder=folder, graphs=graphs)
    return all_logits(runner, TOKENS, 0, () if graphs else (20,))


def near(found: Any, wanted: Any, bound: float) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound * np.abs(wanted).max())


def test_a_rank_reads_its_part(tmp_path: Path) -> None:
    from msx_core.mindspore.weights import part
    from msx_llm.models.quantised.matrix import read_matrix
    from msx_llm.models.registry import read_config
    from msx_llm.models.weights import Checkpoint

    made, numbers = written(tmp_path, "llama", "llama", MIXED, {})
    config = read_config(made)
    assert config.quantised is not None
    with Checkpoint(made, config) as files, Checkpoint(numbers, read_config(numbers)) as wanted:
        for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.up_proj", "mlp.down_proj"):
            layer = f"model.layers.0.{name}"
            form = config.quantised.of(layer)
            assert form is not None
            outputs, inputs = wanted.shape(f"{layer}.weight")
            for rank in range(2):
                rows, columns = part(outputs, 2, rank), part(inputs, 2, rank)
                near(read_matrix(files, form, layer, columns, slice(0, outputs)).numbers.T,
                     wanted.read(f"{layer}.weight", slice(None), columns), 2e-6)  # fmt: skip
                near(files.read(f"{layer}.weight", rows), wanted.read(f"{layer}.weight", rows), 2e-6)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"type": "IQ2_S"}, "quantization_config.type: IQ2_S is not supported; F32 and F16 and Q4_0"),
        ({"type": "Q4_0"}, r"has the tensor|has no tensor|has the shape"),
        ({"types": ["x"]}, "quantization_config.types: .* is not an object"),
        ({"types": {"model.layers.0.mlp.up_proj": "Q9"}}, "types.model.layers.0.mlp.up_proj: Q9 is not supported"),
        ({"rotary_pairs": "yes"}, "rotary_pairs: yes is not true or false"),
    ],
)
def test_a_configuration_of_another_file_is_refused(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    from msx_llm.models.registry import read_config
    from msx_llm.models.weights import Checkpoint
    from msx_sdk.errors import HandlerLoadError

    made, _ = written(tmp_path, "llama", "llama", MIXED, {})
    given = json.loads((made / "config.json").read_text())
    given["quantization_config"] |= changes
    (made / "config.json").write_text(json.dumps(given))
    with pytest.raises(HandlerLoadError, match=says):
        Checkpoint(made, read_config(made))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    from msx_llm.models.registry import read_config
    from msx_llm.models.weights import Checkpoint
    from msx_sdk.errors import HandlerLoadError

    made, _ = written(tmp_path, "llama", "llama", MIXED, {})
    file = made / "model.gguf"
    file.write_bytes(file.read_bytes()[:-64])
    with pytest.raises(HandlerLoadError, match=r"model\.gguf cannot be read: tensor .* was not copied whole"):
        Checkpoint(made, read_config(made))
    (made / "other.gguf").touch()
    with pytest.raises(HandlerLoadError, match=r"model\.gguf and 1 more GGUF files: expected one"):
        Checkpoint(made, read_config(made))
