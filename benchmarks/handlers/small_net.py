"""One of the small networks as a handler that MSX and TorchServe both run; `net` in its yaml says which."""

from __future__ import annotations

from typing import Any


class SmallNet:
    def initialize(self, context: Any) -> None:
        from small_nets import Net  # type: ignore[import-not-found]  # it lies beside this file in the archive

        self.net = Net(context.model_yaml_config["net"])

    def handle(self, data: list[dict[str, Any]], context: Any) -> Any:
        """A request without a body, as readiness probes send it, counts as one with zeros."""
        return self.net([row.get("body") or bytes(self.net.size) for row in data])
