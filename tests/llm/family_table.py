"""The table of docs/families.md, "What each family can do": `python -m tests.llm.family_table` writes it anew after a
family is added. Each cell is what the engine itself says of the configurations that are compared with transformers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msx_llm.adapters.weights import MLP, adaptable
from msx_llm.division import check_division, check_forgets
from msx_llm.kernels.devices import engine_device
from msx_llm.models.config import DecoderConfig
from msx_llm.models.registry import FAMILIES, read_config
from msx_llm.models.text_part import TEXT_PARTS
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel
from tests.llm.runners import GOLDENS
from tests.pages import ROOT

PAGE = ROOT / "docs" / "families.md"
BEGIN, END = "<!-- families -->\n", "<!-- /families -->"
LIKE = {"kimi_k2": "deepseek_v3"}
"""Model types that are compared by another one's goldens."""
INTEGERS = {"quant_method": "gptq", "bits": 8, "group_size": 16, "sym": True}
Given = dict[str, Any]
Said = Callable[[Given], bool]


def divides(stages: int, shards: int) -> Said:
    return lambda given: allowed(lambda: check_division(configured(given), Parallel(0, stages, shards)))


def on_npus(given: Given) -> bool:
    return allowed(lambda: engine_device("Ascend").check_model(configured(given)))


def integers(given: Given) -> bool:
    return allowed(lambda: configured({**given, "quantization_config": INTEGERS}))


def drafts(given: Given) -> bool:
    return allowed(lambda: check_forgets("it", configured(given)))


def adapters(given: Given) -> bool:
    return bool(adaptable(configured(given)))


def in_mlp(given: Given) -> bool:
    return adaptable(configured(given)).issuperset(MLP)


COLUMNS: dict[str, Said] = {
    "experts": lambda given: configured(given).experts is not None,
    "windows": lambda given: any(configured(given).windows),
    "`tensorParallel`": divides(1, 2),
    "`pipelineStages`": divides(2, 1),
    "NPU": on_npus,
    "integer weights": integers,
    "adapters": adapters,
    "of the MLP, too": in_mlp,
    "writes drafts": drafts,
}


def table() -> str:
    heads = ["`model_type`", "also the text part of", "attention", *COLUMNS]
    lines = [heads, ["---"] * len(heads), *(row(kind) for kind in sorted(FAMILIES))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def row(kind: str) -> Iterator[str]:
    goldens = [given | {"model_type": kind} for given in given_of(LIKE.get(kind, kind))]
    parts = sorted(name for name, part in TEXT_PARTS.items() if kind in (part.model_type, *part.others))
    yield f"`{kind}`"
    yield ", ".join(f"`{name}`" for name in parts)
    yield attention(configured(goldens[0]))
    for said in COLUMNS.values():
        found = {said(given) for given in goldens}
        yield "some" if len(found) > 1 else "yes" if found == {True} else "–"


def given_of(kind: str) -> list[Given]:
    read = (json.loads((folder / "config.json").read_text()) for folder in sorted(GOLDENS.iterdir()))
    return [given for given in read if given["model_type"] == kind]


def attention(config: DecoderConfig) -> str:
    if config.latent is not None:
        return "latent"
    if config.delta is not None:
        return "gated delta nets, heads"
    return "heads with sinks" if config.sinks else "heads"


def configured(given: Given) -> DecoderConfig:
    """Raises HandlerLoadError."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(given))
        return read_config(Path(folder))


def allowed(check: Callable[[], object]) -> bool:
    try:
        check()
    except HandlerLoadError:
        return False
    return True


def main() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
