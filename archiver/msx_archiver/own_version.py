"""The version option of the packing commands."""

import click


def show_version(ctx: click.Context) -> None:
    """Prints the version and ends the command."""
    from importlib.metadata import version  # takes long: nothing that a command needs before it is known what to do

    click.echo(f"{ctx.info_name} {version('msx-serve')}")
    ctx.exit()
