"""The command `msx-archiver`: torch-model-archiver's options, also behind the word `pack`, and `check`, `inspect`,
`sign`, `verify`, `unpack`.

Modules are imported on demand, so that `--help` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from msx_archiver.abbreviations import AbbreviatedOptions
from msx_archiver.errors import ArchiveError
from msx_archiver.formats import FORMATS, RUNTIMES
from msx_archiver.own_version import show_version
from msx_archiver.pack_commands import pack_llm_serving, pack_model, pack_servable_of, warn_all

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from msx_archiver.archive import Archive
    from msx_archiver.guard import ArchiveLimits
    from msx_core.mindspore.comparison import ComparedOutput

_PACK = "msx_archiver.pack"
_FILE = click.Path(path_type=Path)
_VERSION = ("-v", "--version")
_REQUIRED = {"model_name": "--model-name", "version": "-v / --version", "handler": "--handler"}


class _Group(AbbreviatedOptions, click.Group):
    """Our own errors end the command with one sentence and status 1.

    `--version` alone asks for the tool's; with a value it is the model's, as torch-model-archiver has it.
    A first word `pack` is what is done without a command, by the same options.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["pack"]:
            ctx.meta[_PACK], args = True, args[1:]
        if len(args) == 1 and args[0] in _VERSION:
            show_version(ctx)
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the word `pack`, too, which is not a command of its own."""
        from click.shell_completion import CompletionItem

        word = (
            [CompletionItem("pack")] if incomplete and "pack".startswith(incomplete) and _PACK not in ctx.meta else []
        )
        return [*word, *super().shell_complete(ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ArchiveError as error:
            raise click.ClickException(str(error)) from error


@click.group(
    cls=_Group,
    invoke_without_command=True,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--model-name", help="Name of the model, and of the archive without its suffix.")
@click.option("-v", "--version", help="Version of the model, for instance 1.0; alone: show the tool's.")
@click.option("--handler", help="h.py, h.py:function, or the name of a built-in or installed handler.")
@click.option(
    "--servable", type=_FILE, help="Folder of a MindSpore Serving servable: packs each of its versions, or --version."
)
@click.option("--llm-serving", type=_FILE, help="The yaml of a model of llm-serving: packs what it names.")
@click.option("--huggingface", type=_FILE, help="With --llm-serving: this folder in Hugging Face's layout instead.")
@click.option("--serialized-file", help="Weights: .mindir, .ckpt, .safetensors, .gguf, …; {rank} in it counts from 0.")
@click.option("--model-file", help="Python file that defines the network.")
@click.option("--extra-files", help="Comma-separated files, globs, and folders whose content is added.")
@click.option("-r", "--requirements-file", help="requirements.txt; the server can install it.")
@click.option("-c", "--config-file", help="model-config.yaml; it is checked now.")
@click.option("--python", type=_FILE, help="The model's interpreter: its vLLM says which names `vllm:` may have.")
@click.option("--runtime", type=click.Choice(RUNTIMES), default="python", show_default=True)
@click.option("--export-path", type=_FILE, help="Folder of the archive; made if missing.  [default: .]")
@click.option("-o", "--output", type=_FILE, help="The archive itself, in place of --export-path and the name.")
@click.option("--archive-format", type=click.Choice(FORMATS), default="default", show_default=True)
@click.option("-f", "--force", is_flag=True, help="Overwrite an archive of the same name.")
@click.pass_context
def main(
    ctx: click.Context,
    /,
    export_path: Path | None,
    servable: Path | None,
    llm_serving: Path | None,
    huggingface: Path | None,
    **options: Any,
) -> None:
    """Pack a model into an archive, or look into one.

    Without a command, or with `pack` before the options: takes the options of torch-model-archiver.
    """
    if ctx.invoked_subcommand is not None:
        if _PACK in ctx.meta:
            raise click.UsageError(f"`pack` takes options only, and '{ctx.invoked_subcommand}' is a command.", ctx)
        return
    if export_path is not None and options["output"] is not None:
        raise click.UsageError("-o names the file with its folder: leave --export-path out.", ctx)
    if llm_serving is not None:
        pack_llm_serving(ctx, llm_serving, huggingface, export_path or Path(), **options)
        return
    if huggingface is not None:
        raise click.UsageError("--huggingface stands beside --llm-serving; msx-serve has one of its own.", ctx)
    if servable is not None:
        pack_servable_of(ctx, servable, export_path or Path(), **options)
        return
    for name, option in _REQUIRED.items():
        if not options[name] and not (name == "handler" and options["config_file"]):
            raise click.UsageError(f"Missing option '{option}'.", ctx)
    pack_model(export_path=export_path or Path(), **options)


@main.command()
@click.argument("archive", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(archive: Path, as_json: bool) -> None:
    """Show an archive's files, manifest, config, and MindIR inputs and outputs."""
    from msx_archiver.inspection import inspect as describe
    from msx_archiver.reader import open_archive
    from msx_archiver.render import render

    with open_archive(archive) as opened:
        report = describe(opened)
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2))
    else:
        render(report)


@main.command()
@click.argument("mindir", type=_FILE)
@click.option("--model-file", type=_FILE, required=True, help="Python file that defines the network.")
@click.option("--weights", type=_FILE, required=True, help="The network's .ckpt or .safetensors.")
@click.option("-c", "--config-file", type=_FILE, help="model-config.yaml, of which `model:` names class and arguments.")
@click.option("--tolerance", type=click.FloatRange(0, 1, min_open=True), help="As a part of an output's largest value.")
def check(mindir: Path, model_file: Path, weights: Path, config_file: Path | None, tolerance: float | None) -> None:
    """Compare the answers of a MindIR with those of the checkpoint that it was exported from, by MindSpore.

    Both get made-up rows, 1, 2 and 3 at a time. The status is 1 where an answer differs by more than the tolerance.
    """
    from msx_archiver.check import check as compare
    from msx_archiver.errors import CheckError

    outputs = compare(mindir, model_file, weights, config_file, tolerance)
    for one in outputs:
        click.echo(f"{one.rows} row{'s' if one.rows > 1 else ' '}  {one.output}: {_apart(one)}")
    if wrong := [one for one in outputs if not one.equal]:
        raise CheckError(f"{mindir.name} does not answer as {model_file.name}: {wrong[0]}.")
    click.echo(f"{mindir.name} answers as {model_file.name} does.")


@main.command()
@click.argument("archive", type=_FILE)
@click.option("--key", type=_FILE, required=True, help="A private key of Ed25519 in PEM.")
@click.option("--output", type=_FILE, help="The signature's file.  [default: ARCHIVE.sig]")
def sign(archive: Path, key: Path, output: Path | None) -> None:
    """Sign what an archive holds, into a file beside it. A server with require_signature unpacks nothing else."""
    from msx_archiver.identity import content_digest
    from msx_archiver.reader import open_archive
    from msx_archiver.signatures import SUFFIX, SignatureError
    from msx_archiver.signatures import sign as signed

    if archive.is_dir():
        raise SignatureError(f"{archive} is a folder, which cannot be signed: pack it into an archive.")
    with open_archive(archive) as opened:
        content = signed(content_digest(opened), key)
    file = output or archive.with_name(archive.name + SUFFIX)
    file.write_bytes(content)
    click.echo(f"{file}")


@main.command()
@click.argument("archive", type=_FILE)
@click.option("--keys", type=_FILE, help="A public key, or a folder of them: the signature is verified, too.")
def verify(archive: Path, keys: Path | None) -> None:
    """Read an archive completely and compare every file with its digest, and its signature with trusted keys."""
    from msx_archiver.contents import verify as compare
    from msx_archiver.progress import progress_bar
    from msx_archiver.reader import open_archive

    with open_archive(archive) as opened:
        warn_all(opened.warnings)
        with progress_bar(f"Verifying {archive.name}", opened.unpacked_size) as progress:
            files = compare(opened, progress)
        found = "agree with their digests" if opened.manifest.files else "were read; its manifest has no digests"
        signer = _signer(archive, opened, keys) if keys else ""
    click.echo(f"{archive} is whole: {files} files {found}.{signer}")


@main.command()
@click.argument("archive", type=_FILE)
@click.option("--to", "folder", type=_FILE, required=True, help="New folder for the files.")
@click.option("--max-ratio", type=float, help="Unpacked size by archive size that is still let through.")
def unpack(archive: Path, folder: Path, max_ratio: float | None) -> None:
    """Unpack an archive into a new folder, after the same checks as the server's."""
    from msx_archiver.extract import unpack_to
    from msx_archiver.progress import progress_bar

    unpack_to(archive, folder, _limits(max_ratio), progress_bar)
    click.echo(f"{folder}")


def _signer(archive: Path, opened: Archive[Any], keys: Path) -> str:
    from msx_archiver.identity import content_digest
    from msx_archiver.signatures import check

    return f" It is signed by the key {check(archive, content_digest(opened), keys)}."


def _apart(one: ComparedOutput) -> str:
    if one.difference is None:
        return f"shape {list(one.shape)}, not {list(one.wanted_shape)}"
    return f"largest difference {one.difference.size:.2g}, {one.difference.part:.2g} of the largest value"


def _limits(max_ratio: float | None) -> ArchiveLimits:
    from msx_archiver.guard import ArchiveLimits

    return ArchiveLimits() if max_ratio is None else ArchiveLimits(max_ratio=max_ratio)


if __name__ == "__main__":
    main()
