from dataclasses import dataclass
from typing import Any


@dataclass
class PoolingParams:
    use_activation: bool | None = None
    task: str | None = None
    extra_kwargs: dict[str, Any] | None = None
