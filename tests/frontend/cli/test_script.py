from __future__ import annotations

import pytest
from click.testing import CliRunner

from msx_frontend.cli.main import main
from msx_frontend.cli.script_arguments import divided


@pytest.mark.parametrize(
    ("arguments", "own", "scripts"),
    [
        (["--models", "a.mar"], ["--models", "a.mar"], []),
        (["--script", "a.py"], ["--script", "a.py"], []),
        (["--script=a.py", "--stop"], ["--script=a.py"], ["--stop"]),
        (["--dt", "--script", "a.py", "--script", "b", "-h"], ["--dt", "--script", "a.py"], ["--script", "b", "-h"]),
        (["--script"], ["--script"], []),
    ],
)  # fmt: skip
def test_what_follows_the_script_is_the_scripts(arguments: list[str], own: list[str], scripts: list[str]) -> None:
    assert divided(arguments) == (own, scripts)


@pytest.mark.parametrize("flags", [["--models", "a.mar"], ["--wait"], ["--model-store", "."], ["--stop"], ["a.mar"]])
def test_flags_that_say_nothing_to_the_server_of_a_script(flags: list[str]) -> None:
    done = CliRunner().invoke(main, [*flags, "--script", "a.py"])
    assert done.exit_code == 2
    assert "only --ts-config, --log-config, --plugins-path and --state-dir may stand before --script" in done.output
