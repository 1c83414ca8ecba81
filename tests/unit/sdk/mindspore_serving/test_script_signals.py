"""A signal that comes while a start script waits for its server's answer."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from msx_sdk.compat.mindspore_serving.server.script_server import ScriptServer


@pytest.fixture
def server() -> Any:
    """Of a script whose call waits."""
    made: Any = ScriptServer()
    made._process = SimpleNamespace(stopping=False, is_asked=True, end=lambda: None)
    return made


def test_an_answer_that_comes_all_the_same_ends_the_script(server: Any) -> None:
    """It would go on without its server, to wherever it waits."""
    server._before = {signal.SIGTERM: signal.SIG_DFL}
    server._on_signal(signal.SIGTERM, None)
    with pytest.raises(SystemExit) as caught:
        server._end_script()
    assert caught.value.code == 0
    server._end_script()  # once only


def test_the_scripts_own_handler_is_called_behind_the_call(server: Any) -> None:
    called: list[int] = []
    server._before = {signal.SIGINT: lambda number, frame: called.append(number)}
    server._on_signal(signal.SIGINT, None)
    assert called == []
    server._end_script()
    assert called == [signal.SIGINT]


def test_without_a_signal_an_answer_ends_nothing(server: Any) -> None:
    server._end_script()
