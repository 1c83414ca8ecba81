"""Packing, as the command's options ask for it: a handler with its files, a servable, or a model of LLM Serving."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click


def pack_model(**options: Any) -> None:
    from msx_archiver.options import PackOptions
    from msx_archiver.pack import pack
    from msx_archiver.progress import progress_bar

    options["handler"] = options["handler"] or ""  # stages have handlers of their own
    path = pack(PackOptions(**options), warn=lambda sentence: warn_all([sentence]), watch=progress_bar)
    click.echo(f"{path}")


def pack_servable_of(
    ctx: click.Context,
    folder: Path,
    to: Path,
    version: str | None,
    output: Path | None,
    archive_format: str,
    force: bool,
    **others: Any,
) -> None:
    from msx_archiver.progress import progress_bar
    from msx_archiver.servable import pack_servable

    _check_unused(ctx, others, "--servable: the folder")
    for number in _versions_to_pack(ctx, folder, version, output):
        path = pack_servable(
            folder,
            number,
            to,
            output=output,
            archive_format=archive_format,
            force=force,
            warn=lambda sentence: warn_all([sentence]),
            watch=progress_bar,
        )
        click.echo(f"{path}")


def pack_llm_serving(
    ctx: click.Context,
    file: Path,
    huggingface: Path | None,
    to: Path,
    version: str | None,
    handler: str | None,
    output: Path | None,
    archive_format: str,
    force: bool,
    **others: Any,
) -> None:
    from msx_archiver.llm_serving.config import read_config
    from msx_archiver.llm_serving.model import imported_model
    from msx_archiver.llm_serving.packing import pack_imported
    from msx_archiver.llm_serving.report import report
    from msx_archiver.options import PackOptions
    from msx_archiver.progress import progress_bar

    _check_unused(ctx, others, "--llm-serving: the yaml")
    config, given = read_config(file)
    weights = huggingface or config.weights
    for line in report(config, given, huggingface=weights is not None):
        click.echo(line)
    model = imported_model(config, weights)
    options = PackOptions(
        model_name=model.name,
        handler=handler or model.handler,
        version=version or "1.0",
        export_path=to,
        output=output,
        archive_format=archive_format,
        force=force,
    )
    path = pack_imported(model, options, warn=lambda sentence: warn_all([sentence]), watch=progress_bar)
    click.echo(f"{path}")


def _check_unused(ctx: click.Context, names: Iterable[str], says: str) -> None:
    """Raises UsageError for an option that was given, where something else says what it would."""
    for name in names:
        if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} has no effect with {says} says all of it. Leave it out.", ctx)


def _versions_to_pack(ctx: click.Context, folder: Path, version: str | None, output: Path | None) -> list[int]:
    from msx_archiver.servable import servable_versions

    if version is not None and not (version.isascii() and version.isdigit()):
        raise click.UsageError(f"--version '{version}' is not a number, as the versions of a servable are.", ctx)
    numbers = servable_versions(folder) if version is None else [int(version)]
    if output is not None and len(numbers) > 1:
        raise click.UsageError(f"-o names one file, and {folder} has {len(numbers)} versions: give --version.", ctx)
    return numbers


def warn_all(warnings: list[str]) -> None:
    for sentence in warnings:
        click.echo(f"Warning: {sentence}", err=True)
