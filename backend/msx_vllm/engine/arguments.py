"""The engine's arguments, read by vLLM's own parser."""

import argparse
import dataclasses
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser

from msx_core.config.vllm_section import check_code, unknown_argument
from msx_core.values import ConfigError, show
from msx_sdk.errors import HandlerLoadError


class _Parser(FlexibleArgumentParser):  # type: ignore[misc]
    """Raises HandlerLoadError where argparse would end the process."""

    def error(self, message: str) -> NoReturn:
        raise HandlerLoadError(f"vllm: {message.removeprefix('argument ')}")


def known_arguments() -> frozenset[str]:
    """The names of vLLM's engine, with underscores."""
    return frozenset(field.name for field in dataclasses.fields(AsyncEngineArgs))


def engine_arguments(section: Mapping[str, Any], decided: Mapping[str, Any]) -> Any:
    """`AsyncEngineArgs` with the members of `vllm:` and those that MSX decides. Raises HandlerLoadError for a name that
    vLLM does not know, and for a value that it does not take."""
    parser = AsyncEngineArgs.add_cli_args(_Parser(add_help=False, allow_abbrev=False))
    fields = known_arguments()
    actions = {action.dest: action for action in parser._actions if action.dest in fields}
    words = [word for name, value in section.items() for word in _words(name, value, actions)]
    return AsyncEngineArgs.from_cli_args(parser.parse_args(words, argparse.Namespace(**decided)))


def _words(written: str, value: Any, actions: Mapping[str, argparse.Action]) -> list[str]:
    name, dot, members = written.partition(".")
    action = actions.get(name)
    if action is None:
        raise HandlerLoadError(unknown_argument(written, actions))
    try:
        check_code(written, value)
    except ConfigError as error:
        raise HandlerLoadError(str(error)) from None
    option = f"--{name.replace('_', '-')}"
    if isinstance(action, argparse.BooleanOptionalAction):
        return [_switch(name, option, value)]
    if isinstance(value, list) and action.nargs in ("+", "*"):
        return [option, *(_member(name, one) for one in value)]
    return [f"{option}{dot}{members}={_text(value)}"]


def _switch(name: str, option: str, value: Any) -> str:
    if not isinstance(value, bool):
        raise HandlerLoadError(f"vllm.{name}: {show(value)} is not true or false")
    return option if value else f"--no-{option.removeprefix('--')}"


def _member(name: str, value: Any) -> str:
    """A word of its own. Raises HandlerLoadError for one that the parser would take for another option, which may be
    one that a model cannot give."""
    text = _text(value)
    if text.startswith("-"):
        raise HandlerLoadError(f"vllm.{name}: {show(value)} begins with a dash, as options do: leave it out")
    return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
