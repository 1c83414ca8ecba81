"""`msx-serve examples DIR`: the examples, the ready-made configurations and the docs that they point to."""

import shutil
from pathlib import Path

import click

SHIPPED = ("examples", "model-configs", "docs")
_LEFT_BEHIND = shutil.ignore_patterns("__pycache__", "build", ".msx", "logs", "key_file.json", "*.mar", "*.war")
"""Files that running the examples leaves in a checkout."""


def copy_examples(to: Path) -> int:
    """Copy into the new folder `to`; returns the exit code. Existing files are not replaced."""
    taken = [to / name for name in SHIPPED if (to / name).exists()]
    if taken:
        click.echo(f"{taken[0]} already exists, nothing was copied: name another folder, or move it away.", err=True)
        return 1
    try:
        for name in SHIPPED:
            shutil.copytree(_place(name), to / name, ignore=_LEFT_BEHIND)
    except OSError as error:
        click.echo(f"The examples cannot be copied to {to}: {error}", err=True)
        return 1
    click.echo(f"{to}: {', '.join(SHIPPED)}. Begin with {to / 'examples' / 'llama' / 'README.md'}.")
    return 0


def _place(name: str) -> Path:
    """Find it beside this module in an installed wheel, else in the checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "shipped" / name
    return installed if installed.is_dir() else package.parents[1] / name
