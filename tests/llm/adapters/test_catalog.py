"""Which adapters of an archive are served."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msx_core.config import AdapterOptions
from msx_llm.adapters.catalog import AdapterCatalog, packed_adapters
from msx_llm.adapters.peft import read_peft
from msx_sdk.errors import HandlerLoadError, PredictionError


def write(folder: Path, **changes: Any) -> Path:
    folder.mkdir(parents=True)
    config = {"peft_type": "LORA", "r": 16, "lora_alpha": 32, "bias": "none", "use_dora": False, **changes}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").write_bytes(b"")
    return folder


def test_the_factor(tmp_path: Path) -> None:
    assert read_peft("a", write(tmp_path / "a")).scale == 2
    assert read_peft("b", write(tmp_path / "b", use_rslora=True)).scale == 8


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"use_dora": True}, "use_dora: True is not served"),
        ({"bias": "all"}, "bias: 'all' is not served"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"layers_to_transform": [1]}, "layers_to_transform"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
        ({"peft_type": "IA3"}, "peft_type 'IA3' is not served"),
        ({"init_lora_weights": "pissa_niter_16"}, "pissa_niter_16 changes the model, too"),
        ({"r": 0}, "r: 0 of adapter_config.json is not an integer from 1 to 65536"),
        ({"lora_alpha": None}, "lora_alpha: None of adapter_config.json is not a number"),
    ],
)
def test_what_is_not_served(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match=f"adapter a: .*{reason}"):
        read_peft("a", write(tmp_path / "a", **changes))


def test_those_of_an_archive(tmp_path: Path) -> None:
    assert packed_adapters(tmp_path, None).names == ()
    for name in ("sql", "chat"):
        write(tmp_path / "adapters" / name)
    catalog = packed_adapters(tmp_path, None)
    assert catalog.names == ("chat", "sql")
    assert catalog.find("sql").folder == str(tmp_path / "adapters" / "sql")
    with pytest.raises(PredictionError, match="no adapter 'SQL'; it has chat, sql") as caught:
        catalog.find("SQL")
    assert caught.value.status == 404
    with pytest.raises(PredictionError, match="it has none"):
        AdapterCatalog({}).find("sql")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (AdapterOptions(max_rank=8), r"adapter sql: r is 16, above adapters\.maxRank \(8\)"),
        (AdapterOptions(folder=".."), r"adapters\.folder: \.\. is outside of the archive"),
    ],
)
def test_limits(options: AdapterOptions, reason: str, tmp_path: Path) -> None:
    write(tmp_path / "adapters" / "sql")
    with pytest.raises(HandlerLoadError, match=reason):
        packed_adapters(tmp_path, options)
