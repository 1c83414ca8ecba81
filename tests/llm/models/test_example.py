"""The family that docs/families.md shows is the engine's own, whose logits test_decoder.py compares."""

from __future__ import annotations

import re
from pathlib import Path

from msx_llm.models import olmo2

PAGE = Path(__file__).parents[3] / "docs" / "families.md"


def test_the_page_shows_the_module() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert code == Path(olmo2.__file__).read_text("utf-8")
