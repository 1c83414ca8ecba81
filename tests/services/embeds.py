"""Says that it embeds texts, as a model behind OpenAI's route does."""

from __future__ import annotations

from typing import Any

from msx_core.generation import Capabilities
from msx_sdk import Handler


class Embeds(Handler):
    def capabilities(self) -> Capabilities:
        return Capabilities(embed=True)

    def inference(self, inputs: Any) -> Any:
        return ["embedded"] * len(inputs)
