"""`python -m benchmarks NAME`; docs/benchmarks.md has the figures."""

from __future__ import annotations

import click

from benchmarks.cli import all as all_of_them
from benchmarks.cli.names import NAMES, command


class Benchmarks(click.Group):
    """Only the benchmark that is asked for is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*NAMES, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command(cmd_name) if cmd_name in NAMES else super().get_command(ctx, cmd_name)


@click.group(cls=Benchmarks, commands={"all": all_of_them.main})
def main() -> None:
    """Measure the server's promises, each beside a limit or a peer in the same run."""


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
