"""The options of a registration."""

from typing import Any

import msgspec

from msx_core.generation import AdapterFiles
from msx_core.servable_start import ServableStart

_OF_THE_CALL = ("synchronous", "replace", "at_startup", "servable")
"""Options that a restarted server does not need."""


class Registration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`POST /models`, by TorchServe's names; None: not given. `replace` and `at_startup` exist in MSX only."""

    url: str = ""
    model_name: str | None = None
    handler: str | None = None
    engine: str | None = None
    """Engine of a model in Hugging Face's layout without an archive; exists in MSX only."""
    runtime: str | None = None
    batch_size: int | None = None
    max_batch_delay: int | None = None
    initial_workers: int | None = None
    response_timeout: int | None = None
    startup_timeout: int | None = None
    autoscaling: bool | None = None
    """Instead of the yaml's; exists in MSX only."""
    s3_sse_kms: bool = False
    """Sign the download by the AWS keys of the environment."""
    synchronous: bool = True
    replace: bool = False
    """Replace a version of the same number, which serves until the new one is ready."""
    at_startup: bool = False
    rows_compared: bool = False
    """A worker that finds rows of the model wrong at warm-up does not load it. Not set in records of older servers,
    whose models start with an ERROR for one release; no call gives it."""
    stage_workers: dict[str, tuple[int, int]] = {}
    """The least and most workers of each stage, which a restarted server uses again; no call gives them."""
    adapters: dict[str, AdapterFiles] = {}
    """Adapters loaded while the model ran, by name, which a restarted server has again; no call gives them."""
    sleep_level: int = 0
    """How deeply the model slept, which a restarted server puts to sleep again; no call gives it."""
    servable: ServableStart | None = None
    """Servable of a start script, which ends with the server: the state does not have it."""

    def overrides(self) -> dict[str, Any]:
        """The options that override model-config.yaml."""
        names = ("batch_size", "max_batch_delay", "response_timeout", "startup_timeout")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        options: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in options.items() if name not in _OF_THE_CALL}
