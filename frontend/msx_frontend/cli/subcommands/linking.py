"""`msx-serve link-names DIR`: this server's commands by TorchServe's names, as the container has them."""

import sys
import sysconfig
from pathlib import Path

import click

NAMES = {
    "torchserve": "msx-serve",
    "torch-model-archiver": "msx-archiver",
    "torch-workflow-archiver": "msx-workflow-archiver",
}


@click.command("link-names")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
def link_names(folder: Path) -> None:
    """Make links in DIR by TorchServe's names of the commands. Nothing that is there is replaced."""
    sys.exit(made_links(folder, Path(sysconfig.get_path("scripts"))))


def made_links(folder: Path, commands: Path) -> int:
    """Links in `folder` to the `commands` of an environment; returns the exit code."""
    links = {folder / name: (commands / command).absolute() for name, command in NAMES.items()}
    if missing := next((file for file in links.values() if not file.exists()), None):
        click.echo(f"{missing} is not there: install msx-serve into this environment first.", err=True)
        return 1
    if taken := next((link for link, file in links.items() if _is_another(link, file)), None):
        click.echo(f"{taken} is there already, nothing was linked: remove it, or name another folder.", err=True)
        return 1
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for link, file in links.items():
            if not link.is_symlink():
                link.symlink_to(file)
    except OSError as error:
        click.echo(f"No links can be made in {folder}: {error}", err=True)
        return 1
    click.echo(f"{folder}: {', '.join(NAMES)}. Put it on the PATH.")
    return 0


def _is_another(link: Path, file: Path) -> bool:
    return (link.exists() or link.is_symlink()) and not (link.is_symlink() and link.readlink() == file)
