"""The outermost layer of a listener, over families of a test."""

from __future__ import annotations

from typing import Any

from msx_net.http.exchange import Exchange
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family
from msx_net.http.router import Further, Router
from msx_net.http.wire import LogsReplies
from msx_net.model_names import ModelNames

TORCHSERVE = Family("TorchServe", (), torchserve_failure, closes_on_error=True)


def exchange_of(
    *families: Family,
    log: LogsReplies,
    limit: int = 1000,
    further: Further | None = None,
    names: ModelNames | None = None,
    **options: Any,
) -> Exchange:
    default = families[0] if families else TORCHSERVE
    return Exchange(Router(families, default, ("inference",), further, names), log, limit=limit, **options)
