"""The family that docs/families.md adds, by the code of the page."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from msx_llm.models import registry
from tests.llm.runners import GOLDENS, all_logits, limits, make_runner

PAGE = Path(__file__).parents[3] / "docs" / "families.md"
EXAMPLE = GOLDENS.with_name("llm_examples") / "olmo2"

pytestmark = pytest.mark.mindspore


@pytest.fixture
def olmo2(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert code.count("\n") < 60
    module = ModuleType("olmo2")
    monkeypatch.setitem(sys.modules, "olmo2", module)
    exec(compile(code, str(PAGE), "exec"), vars(module))
    family = registry.DecoderFamily(module.configure, module.MEMBERS)
    monkeypatch.setattr(registry, "FAMILIES", {**registry.FAMILIES, "olmo2": family})
    return module


def test_it_has_the_logits_of_transformers(olmo2: ModuleType) -> None:
    ms = pytest.importorskip("mindspore")
    ms.runtime.launch_blocking()
    golden = np.load(EXAMPLE / "expected.npz")
    for graphs, chunks in ((False, (16, 13)), (True, ())):
        runner = make_runner("olmo2", limits(), folder=EXAMPLE, graphs=graphs)
        found = all_logits(runner, golden["tokens"].tolist(), 1, chunks)
        np.testing.assert_allclose(found, golden["logits"], atol=1e-4)
