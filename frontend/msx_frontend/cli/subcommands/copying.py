"""`msx-serve examples`."""

import sys
from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def examples(folder: Path) -> None:
    """Copy the examples, the ready-made configurations and the docs into DIR."""
    from msx_frontend.cli.examples import copy_examples

    sys.exit(copy_examples(folder))
