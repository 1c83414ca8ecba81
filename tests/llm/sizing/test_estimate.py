from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_core.config import parse_model_config
from msx_core.safe_yaml import read_yaml
from msx_core.sizing import Sizing, SizingRefusal, SizingRequest
from msx_llm.draft_loading import draft_weights
from msx_llm.kernels.ascend.blocks import block_size_of
from msx_llm.kernels.ascend.peaks import PEAKS
from msx_llm.models.registry import read_config
from msx_llm.sizing.__main__ import answer
from msx_llm.sizing.estimate import estimate
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel
from tests.llm.sizing.models import DEEPSEEK_V3, GPT_OSS_20B, LLAMA_7B, QWEN2_7B, QWEN3_30B_A3B, QWEN3_NEXT, folder_of

DTYPES_ON_NPUS = ["float16", "bfloat16", "bfloat16"]


def sized(folder: Path, npu: str = "910B4", **asked: Any) -> Sizing:
    return estimate(SizingRequest(folder=str(folder), npu=npu, **asked))


def test_a_step_reads_the_weights_and_the_cache(tmp_path: Path) -> None:
    sizing = sized(folder_of(tmp_path, LLAMA_7B), context=1024)
    weights = 6_738_415_616 - 32000 * 4096 - 4096  # neither the embedding nor the last norm
    assert sizing.decode is not None
    assert sizing.decode.memory == pytest.approx((weights * 2 + 1024 * 524288) / 0.8e12)
    assert sizing.decode.compute == pytest.approx((2 * weights + 1024 * 32 * 4 * 4096) / 245.7e12)
    assert sizing.decode.bound == "memory"
    assert sizing.text_rate == pytest.approx(1 / sizing.decode.memory)


def test_a_prompt_is_bound_by_its_operations(tmp_path: Path) -> None:
    sizing = sized(folder_of(tmp_path, LLAMA_7B), context=4096)
    assert sizing.prefill is not None
    assert sizing.prefill.bound == "compute"
    layers = 6_738_415_616 - 2 * 32000 * 4096 - 4096
    flops = 2 * (layers * 4096 + 32000 * 4096) + 4096 * 32 * 4096 * 4 * 4096 // 2
    assert sizing.prefill.compute == pytest.approx(flops / 245.7e12)


def test_all_reduces_go_round_a_ring(tmp_path: Path) -> None:
    sizing = sized(folder_of(tmp_path, LLAMA_7B), parallel="tp4", texts=8, context=1024)
    assert sizing.decode is not None
    assert sizing.decode.exchange == pytest.approx(2 * 32 * 8 * 4096 * 2 * 2 * 3 / 4 / 32e9)


def test_stages_have_lanes_of_texts(tmp_path: Path) -> None:
    sizing = sized(folder_of(tmp_path, LLAMA_7B), parallel="pp2", texts=8, context=1024)
    assert sizing.decode is not None
    assert [rank.layers for rank in sizing.ranks] == [16, 16]
    assert sizing.text_rate == pytest.approx(1 / (2 * sizing.decode.seconds))
    assert sizing.sum_rate == pytest.approx(8 / (2 * sizing.decode.seconds))


def test_numbers_of_4_bits_are_counted_as_numbers(tmp_path: Path) -> None:
    """gpt-oss-20b has 20.9 billion; its files have two of an expert's in a byte."""
    sizing = sized(folder_of(tmp_path, GPT_OSS_20B), npu="910C", texts=1, context=128)
    assert sizing.parameters == 20_914_757_184


def test_what_is_behind_a_window_is_read_too(tmp_path: Path) -> None:
    windows = {"use_sliding_window": True, "sliding_window": 1024, "max_window_layers": 0}
    whole = sized(folder_of(tmp_path, QWEN2_7B), context=32768).decode
    short = sized(folder_of(tmp_path, QWEN2_7B, **windows), context=32768).decode
    assert whole is not None
    assert short is not None
    assert short.memory == whole.memory


def test_a_chip_that_the_loader_refuses_fits_nothing(tmp_path: Path) -> None:
    sizing = sized(folder_of(tmp_path, LLAMA_7B), npu="310P", context=64)
    assert all(rank.free >= 0 for rank in sizing.ranks)
    assert (sizing.fits, sizing.remedies) == (False, [])
    assert "Ascend310P: language models do not run on this chip" in str(sizing.refusal)


@pytest.mark.parametrize(
    ("model", "more", "says"),
    [
        (LLAMA_7B, {"desc_act": True}, "model.layers.0.self_attn.o_proj: groups of desc_act have inputs of all ranks"),
        (LLAMA_7B, {"group_size": 4096}, "o_proj: groups of 4096 do not divide the 2048 inputs that each of"),
        (
            QWEN3_30B_A3B | {"num_hidden_layers": 2},
            {"group_size": 256},
            "mlp.experts: groups of 256 do not divide the 384 inputs",
        ),
    ],
)
def test_groups_that_ranks_would_share_are_refused(
    model: dict[str, Any], more: dict[str, Any], says: str, tmp_path: Path
) -> None:
    """The loader does so."""
    given = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, **more}
    folder = folder_of(tmp_path, model, quantization_config=given)
    assert sized(folder, npu="910B3", context=64, texts=1).fits
    with pytest.raises(HandlerLoadError, match=says):
        sized(folder, npu="910B3", context=64, parallel="tp2")


def test_a_model_that_an_npu_has_no_cells_for_fits_none(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, QWEN3_NEXT)
    sizing = sized(folder, npu="910B4", parallel="tp2", context=64, texts=1)
    assert (sizing.fits, sizing.remedies) == (False, [])
    assert str(sizing.refusal).endswith("for an NPU; serve the model on a CPU, or on an NPU with vllm-ascend")
    assert sized(folder, npu="cpu", context=64, texts=1).refusal is None


def test_states_are_in_the_cache_whatever_the_length_of_a_text(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, QWEN3_NEXT)
    short, long, more = (
        sized(folder, npu="cpu", context=n, texts=t).ranks[0].cache for n, t in ((64, 1), (128, 1), (64, 2))
    )
    token, text = 12 * 2 * 2 * 256 * 4, 2 * 36 * (32 * 128 * 128 + 3 * 8192) * 4
    assert (short, long) == (2 * 64 * token + 2 * text, 2 * 128 * token + 2 * text)
    assert more - short == 64 * token + text


def test_a_text_with_drafts_has_a_state_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_llm.sizing.estimate.remedies", lambda *asked: [])  # it does not fit this machine
    folder = folder_of(tmp_path, QWEN3_NEXT)
    (other := tmp_path / "draft").mkdir()
    small = folder_of(other, LLAMA_7B, num_hidden_layers=1, vocab_size=QWEN3_NEXT["vocab_size"])
    without, sizing = (sized(folder, npu="cpu", context=64, draft=draft).ranks[0] for draft in (None, str(small)))
    assert sizing.cache - without.cache == 2 * 36 * (32 * 128 * 128 + 3 * 8192) * 4


@pytest.mark.parametrize(("npu", "widened"), [("910B4", True), ("cpu", False)])
def test_groups_that_no_operator_takes_are_numbers(tmp_path: Path, npu: str, widened: bool) -> None:
    given = {"quant_method": "gptq", "bits": 4, "group_size": 16, "sym": True}
    quantised = sized(folder_of(tmp_path, LLAMA_7B, quantization_config=given), npu=npu, context=64)
    numbers = sized(folder_of(tmp_path, LLAMA_7B), npu=npu, context=64)
    assert (quantised.ranks[0].weights == numbers.ranks[0].weights) == widened


def test_what_fits_needs_no_remedy(tmp_path: Path) -> None:
    sizing = sized(folder_of(tmp_path, LLAMA_7B), texts=7)
    assert (sizing.fits, sizing.remedies) == (True, [])


@pytest.mark.parametrize(
    ("asked", "keys"),
    [
        ({"texts": 2, "context": 512}, ["maxTotalTokens: 512", "slotBuckets: [2]"]),
        (
            {"texts": 65, "context": 64, "parallel": "pp2tp2"},
            [
                "parallelType: pptp, parallel: {pipelineStages: 2, tensorParallel: 2}",
                "maxTotalTokens: 64",
                "slotBuckets: [65]",
                "maxConcurrent: 65",
            ],
        ),
    ],
)
def test_keys_serve_what_was_asked_about(tmp_path: Path, asked: dict[str, Any], keys: list[str]) -> None:
    """And a server's own reading of them is what was asked about."""
    assert sized(folder_of(tmp_path, LLAMA_7B), **asked).keys == keys
    (file := tmp_path / "model-config.yaml").write_text("\n".join(keys).replace(", parallel", "\nparallel"))
    config, _ = parse_model_config(read_yaml(file))
    assert config.slot_buckets is not None
    assert (config.slot_buckets[-1], config.max_total_tokens) == (asked["texts"], asked["context"])
    assert config.max_concurrent >= asked["texts"]
    assert config.layout.ranks == (4 if "parallel" in asked else 1)


def test_remedies_are_the_largest_that_fit(tmp_path: Path) -> None:
    """32 GiB * 0.9 - 12.55 GiB of weights - 0.16 GiB of a step are 16.09 GiB: 257 blocks of 64 MiB, one of which no
    text has."""
    folder = folder_of(tmp_path, LLAMA_7B)
    sizing = sized(folder, texts=9)
    assert not sizing.fits
    assert [remedy.partition("  ")[0] for remedy in sizing.remedies] == [
        "slotBuckets: [8]",
        "maxTotalTokens: 3584",
        "parallelType: tp, parallel: {tensorParallel: 2}",
    ]
    assert sized(folder, texts=9, context=3584).fits
    assert not sized(folder, texts=9, context=3584 + 64).fits
    assert sized(folder, texts=9, parallel="tp2").fits


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    (folder := tmp_path / "draft").mkdir()
    return folder_of(folder, LLAMA_7B, num_hidden_layers=2, max_position_embeddings=2048)


@pytest.mark.parametrize("parallel", ["", "tp2", "pp2"])
def test_a_draft_model_is_whole_on_the_first_rank(tmp_path: Path, draft: Path, parallel: str) -> None:
    """With a cache of the same texts, as the engine has it."""
    asked: dict[str, Any] = {"parallel": parallel, "texts": 4, "context": 1024}
    folder = folder_of(tmp_path, LLAMA_7B)
    config = read_config(draft)
    weights, blocks = draft_weights(config, Parallel(target="Ascend")), 1 + 4 * 1024 // block_size_of(config)
    held = weights + blocks * block_size_of(config) * config.token_bytes(1, 1, "Ascend")
    sizing, without = sized(folder, draft=str(draft), **asked), sized(folder, **asked)
    assert [rank.draft for rank in sizing.ranks] == [held, 0][: len(sizing.ranks)]
    assert sizing.ranks[0].used - without.ranks[0].used == held
    assert sizing.host - without.host == weights
    assert sizing.keys == [*without.keys, "speculative: {method: draft}"]
    assert len(sizing.notes) == len(without.notes) + 1


def test_a_draft_model_takes_room_from_texts(tmp_path: Path, draft: Path) -> None:
    folder = folder_of(tmp_path, LLAMA_7B)
    most: dict[str, Any] = {"texts": 15, "context": 2048}
    assert sized(folder, **most).fits
    assert not (sizing := sized(folder, draft=str(draft), **most)).fits
    assert sizing.remedies[0].startswith("slotBuckets: [13]")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vocab_size": 5}, "--draft: it has 5 tokens and the model 32000: both must have the same tokenizer"),
        ({"max_position_embeddings": 64}, "--draft: it takes 64 tokens: give --context of 64 at most"),
        ({"model_type": "bert"}, "--draft: config.json, model_type: 'bert' is not a family"),
    ],
)
def test_a_draft_model_must_fit_the_model(tmp_path: Path, draft: Path, changes: dict[str, Any], said: str) -> None:
    folder_of(draft, LLAMA_7B, **changes)
    with pytest.raises(HandlerLoadError, match=said):
        sized(folder_of(tmp_path, LLAMA_7B), draft=str(draft), context=128)


def test_adapters_take_memory_of_every_rank(tmp_path: Path) -> None:
    folder, asked = folder_of(tmp_path, LLAMA_7B), dict[str, Any](parallel="pp2", context=64)
    sizing, without = sized(folder, adapters=4, adapter_rank=16, **asked), sized(folder, **asked)
    held = 2 * 16 * 64 * (4 * (4096 + 4096) + 3 * (4096 + 11008))
    assert [rank.adapters for rank in sizing.ranks] == [held, held]
    assert sizing.ranks[1].used - without.ranks[1].used == held
    assert sizing.keys == [*without.keys, "adapters: {maxLoras: 4, maxRank: 16}"]
    assert len(sizing.notes) == len(without.notes) + 1


def test_adapters_of_latent_attention_are_not_served(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match="--adapters: those of deepseek_v3 are not served"):
        sized(folder_of(tmp_path, DEEPSEEK_V3), adapters=1)


def test_a_model_without_room_for_any_text_needs_a_group(tmp_path: Path) -> None:
    huge = {"num_hidden_layers": 320, "num_key_value_heads": 8}
    sizing = sized(folder_of(tmp_path, LLAMA_7B, **huge))
    assert [remedy.partition("  ")[0] for remedy in sizing.remedies] == [
        "parallelType: tp, parallel: {tensorParallel: 4}"
    ]


def test_a_cpu_has_no_times(tmp_path: Path) -> None:
    sizing = sized(folder_of(tmp_path, LLAMA_7B), "cpu", context=64)
    assert (sizing.dtype, sizing.decode, sizing.sum_rate) == ("float32", None, None)
    assert "bandwidth" in sizing.notes[0]


def test_a_data_type_is_chosen(tmp_path: Path) -> None:
    """NPUs compute in 16 bits."""
    folder = folder_of(tmp_path, LLAMA_7B)
    assert [sized(folder, dtype=dtype).dtype for dtype in (None, "bfloat16", "float32")] == DTYPES_ON_NPUS
    assert sized(folder, "cpu", context=64).ranks[0].weights == 2 * sized(folder, context=64).ranks[0].weights


@pytest.mark.parametrize("npu", [*PEAKS, "ascend910b3", "CPU"])
def test_every_device_is_known_by_its_name(tmp_path: Path, npu: str) -> None:
    assert sized(folder_of(tmp_path, LLAMA_7B), npu, context=64).npu == npu


@pytest.mark.parametrize("word", ["tp2pp2", "PP2TP2"])
def test_both_ways_to_divide_in_any_order(tmp_path: Path, word: str) -> None:
    sizing = sized(folder_of(tmp_path, LLAMA_7B), parallel=word, context=64)
    assert (sizing.stages, sizing.shards) == (2, 2)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"npu": "910B9"}, "--npu: '910B9' is not known; known are 910B1, 910B2, 910B3, 910B4, 910C, 310P, cpu"),
        ({"parallel": "tp3"}, "num_key_value_heads: 32 cannot be divided evenly over tensorParallel: 3"),
        ({"parallel": "pp33"}, "a model of 32 layers cannot be divided into 33 pipeline stages"),
        ({"parallel": "dp2"}, "--parallel: 'dp2' is not a group of at most 1024 ranks; give tpN, ppN, or both"),
        ({"parallel": "tp2tp2"}, "--parallel: 'tp2tp2' is not a group"),
        ({"parallel": "pp64tp64"}, "--parallel: 'pp64tp64' is not a group"),
        ({"context": 4097}, "--context: 4097 is more than the model's context of 4096 tokens"),
        ({"dtype": "int4"}, "--dtype: 'int4' is not known; known are float16, bfloat16, float32"),
    ],
)
def test_what_cannot_be_estimated_is_told(tmp_path: Path, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(HandlerLoadError) as caught:
        sized(folder_of(tmp_path, LLAMA_7B), **asked)
    assert said in str(caught.value)


def test_headers_of_weights_are_checked(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, LLAMA_7B)
    (folder / "model.safetensors").write_bytes(b"no header")
    with pytest.raises(HandlerLoadError, match=r"model\.safetensors is not a safetensors file"):
        sized(folder)


def test_a_refusal_is_an_answer(tmp_path: Path) -> None:
    answered = answer(msgspec.json.encode(SizingRequest(folder=str(tmp_path), npu="cpu")))
    assert isinstance(answered, SizingRefusal)
    assert "config.json cannot be read" in answered.error
