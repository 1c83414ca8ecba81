"""Engines of the models of the start that are not packed. What a hub has is not fetched for it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from msx_archiver.errors import PackError
from msx_archiver.linked_checkpoint import handler_of
from msx_archiver.servable import YAML
from msx_core.config import ConfigError, ModelConfig, load_model_config
from msx_core.start_errors import StartError
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.environments.interpreters import Interpreters
from msx_frontend.findings import Finding, failed, ok
from msx_frontend.management_errors import InvalidModel
from msx_frontend.models.startup.huggingface_folders import named_checkpoints
from msx_frontend.models.versions.engine_choice import EngineChoice, OpenModel

NAME = "engines"


def check_engines(machine: Machine) -> Iterator[Finding]:
    """Leave out what cannot be read: that is a finding of other checks, or of the start."""
    choice = EngineChoice(machine.config, Interpreters(machine.config, machine.env, confine=machine.confine))
    try:
        named = list(named_checkpoints(machine.config.huggingface))
    except StartError:
        return
    for name, folder in named:
        try:
            model = OpenModel(name, folder, handler_of(folder), _config(folder))
            yield ok(NAME, f"{name}: {asyncio.run(choice.of(model)).said}")
        except InvalidModel as error:
            yield failed(NAME, error.message, "docs/engines.md says which engine serves what.")
        except (PackError, ConfigError, OSError):
            continue


def _config(folder: Path) -> ModelConfig:
    """Raises ConfigError, OSError."""
    file = folder / YAML
    return load_model_config(file)[0] if file.is_file() else ModelConfig()
