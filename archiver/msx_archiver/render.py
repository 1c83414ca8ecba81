"""Prints a report: as a table on a terminal, as plain lines in pipes."""

import sys
from collections.abc import Iterator

import click

from msx_archiver.inspection import GraphReport, InspectionReport, TensorReport
from msx_archiver.sizes import human

_TITLES = ("File", "Size", "SHA-256")


def render(report: InspectionReport) -> None:
    """Writes the report to stdout."""
    for key, value in _summary(report):
        click.echo(f"{key + ':':<17}{_printable(value)}")
    click.echo()
    _table(report)
    for graph in report.graphs:
        click.echo("\n" + "\n".join(_graph_lines(graph)))
    if report.config is not None:
        click.echo(f"\nConfig {_printable(report.manifest['model']['configFile'])}:")
        click.echo("".join(f"  {_printable(line)}\n" for line in report.config.splitlines()), nl=False)
    for warning in report.warnings:
        click.echo(f"Warning: {_printable(warning)}", err=True)


def _summary(report: InspectionReport) -> Iterator[tuple[str, str]]:
    model = report.manifest["model"]
    size = f"{human(report.archive_size)}, unpacked " if report.archive_size else ""
    yield "Archive", f"{report.path} ({report.format}, {size}{human(report.unpacked_size)})"
    yield "Model", f"{model.get('modelName', '(no name)')} {model['modelVersion']}"
    optional = {
        "Handler": model.get("handler"),
        "Serialized file": model.get("serializedFile"),
        "Model file": model.get("modelFile"),
        "Requirements": model.get("requirementsFile"),
        "Runtime": report.manifest.get("runtime"),
        "Created": report.manifest.get("createdOn"),
        "Archiver": report.manifest.get("archiverVersion"),
    }
    yield from ((key, value) for key, value in optional.items() if value)


def _table(report: InspectionReport) -> None:
    rows = [(_printable(file.path), human(file.size), (file.sha256 or "-")) for file in report.files]
    if sys.stdout.isatty():
        _rich_table(rows)
        return
    width = max(len(path) for path, _, _ in [_TITLES, *rows])
    for path, size, digest in [_TITLES, *rows]:
        click.echo(f"{path:<{width}}  {size:>10}  {digest}")


def _rich_table(rows: list[tuple[str, str, str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for title in _TITLES:
        table.add_column(title, justify="right" if title == "Size" else "left", overflow="fold")
    for path, size, digest in rows:
        table.add_row(Text(path), size, digest if digest == "-" else f"{digest[:16]}…")
    Console().print(table)


def _graph_lines(graph: GraphReport) -> Iterator[str]:
    yield f"{_printable(graph.path)} ({_printable(graph.producer)}, {len(graph.operators)} operators)"
    for label, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        yield from (f"  {label:<7} {_printable(tensor.name)}: {tensor.dtype}{_shape(tensor)}" for tensor in tensors)


def _shape(tensor: TensorReport) -> str:
    return "[...]" if tensor.shape == [-2] else f"[{', '.join('?' if d < 0 else str(d) for d in tensor.shape)}]"


def _printable(text: str) -> str:
    """Removes control sequences for the terminal, since archives may come from anywhere."""
    return "".join(char if char.isprintable() or char == "\t" else repr(char)[1:-1] for char in text)
