"""The command `msx-workflow-archiver`: torch-workflow-archiver's options."""

from pathlib import Path
from typing import Any

import click

from msx_archiver.abbreviations import AbbreviatedOptions
from msx_archiver.errors import ArchiveError
from msx_archiver.own_version import show_version


@click.command(cls=AbbreviatedOptions, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--workflow-name", required=True, help="Name of the workflow, and of the archive without its suffix.")
@click.option("--spec-file", required=True, help="YAML file with the workflow's models and its graph.")
@click.option("--handler", help="Python file with the functions of the graph.")
@click.option("--extra-files", help="Comma-separated files, globs, and folders whose content is added.")
@click.option("--export-path", type=click.Path(path_type=Path), help="Folder of the archive; made if missing.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The archive itself, in place of --export-path.")
@click.option("-f", "--force", is_flag=True, help="Overwrite an archive of the same name.")
@click.option(
    "-v",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, given: show_version(ctx) if given else None,
    help="Show the version.",
)
def main(export_path: Path | None, **options: Any) -> None:
    """Pack a workflow of several models into a .war archive."""
    from msx_archiver.pack_workflow import pack_workflow
    from msx_archiver.progress import progress_bar
    from msx_archiver.workflow_options import WorkflowOptions

    if export_path is not None and options["output"] is not None:
        raise click.UsageError("-o names the file with its folder: leave --export-path out.")
    try:
        path = pack_workflow(
            WorkflowOptions(export_path=export_path or Path(), **options),
            warn=lambda sentence: click.echo(f"Warning: {sentence}", err=True),
            watch=progress_bar,
        )
    except ArchiveError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{path}")


if __name__ == "__main__":
    main()
