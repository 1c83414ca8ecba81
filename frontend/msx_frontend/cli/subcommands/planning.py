"""`msx-serve plan`: what a model takes of NPUs, before there are any."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from msx_archiver.errors import ArchiveError
from msx_archiver.gguf.files import made_files
from msx_archiver.linked_gguf import gguf_in
from msx_archiver.reader import open_archive
from msx_core.config.sections import MOST_ADAPTER_RANK, MOST_ADAPTERS
from msx_core.file_kinds import GGUF
from msx_core.module_command import module_command
from msx_core.sizing import MOST, Sizing, SizingRefusal, SizingRequest
from msx_frontend.archives.schemes import is_hub
from msx_frontend.cli.subcommands.hub_file import hub_file, last_line
from msx_frontend.cli.subcommands.plan_table import table
from msx_frontend.worker_modules import SIZING

CONFIG = "config.json"
LIMIT = 60.0
"""Seconds."""
MOST_CONFIG = 1 << 20
MADE = ("generation_config.json", "tokenizer.json", "tokenizer_config.json")
"""Files that can be made of a GGUF file, too, and that a plan does not need."""
MISSING, BUG = "No module named", "this is a bug of MSX; please report it with the model's config.json."
NEEDS = 'plan needs the packages of the extra mindspore: `pip install "msx-serve[mindspore]"`.'
_COMMAND = module_command(sys.executable, SIZING)


@click.command()
@click.argument("model", metavar="MODEL")
@click.option("--npu", required=True, metavar="NAME", help="910B1 to 910B4, 910C, 310P, or cpu for this machine.")
@click.option("--parallel", default="", metavar="GROUP", help="tpN, ppN or ppNtpM. Default: one NPU.")
@click.option("--texts", default=1, show_default=True, type=click.IntRange(1, MOST), help="At once.")
@click.option("--context", type=click.IntRange(1, MOST), help="Tokens of each text. Default: the model's.")
@click.option("--dtype", help="float16, bfloat16 or float32. Default: that of config.json.")
@click.option("--draft", metavar="MODEL", help="A small model that writes drafts, given as MODEL is.")
@click.option(
    "--adapters", type=click.IntRange(1, MOST_ADAPTERS), help="LoRA adapters on the device at once (maxLoras)."
)
@click.option(
    "--adapter-rank", type=click.IntRange(1, MOST_ADAPTER_RANK), help="Of each of --adapters (maxRank). Default: 64."
)
@click.option("--json", "as_json", is_flag=True, help="One object: bytes, and seconds.")
def plan(model: str, draft: str | None, as_json: bool, **asked: str | int | None) -> None:
    """Estimate the memory and the speed of a language model on NPUs that need not be here.

    MODEL is a folder in Hugging Face's layout, its config.json alone, a GGUF file, an archive, or a hub's URL
    (hf://ORG/NAME), of which config.json alone is read; of weights only headers are. Exit code: 0 if it fits; 1 if not,
    with the keys to change, or if the model cannot be estimated.
    """
    if asked["adapter_rank"] is not None and asked["adapters"] is None:
        raise click.UsageError("--adapter-rank is that of each of --adapters: say how many.")
    given = {name: value for name, value in asked.items() if value is not None}
    with _folder(model) as folder, _folder(draft) if draft else nullcontext() as small:
        folders = {"folder": str(folder), "draft": None if small is None else str(small)}
        sizing = _asked(msgspec.convert({**folders, **given}, SizingRequest))
    if as_json:
        click.echo(msgspec.json.encode(_described(sizing)))
    else:
        click.echo(table(sizing))
    sys.exit(0 if sizing.fits else 1)


@contextmanager
def _folder(model: str) -> Iterator[Path]:
    """A folder with the model's `config.json`. Raises ClickException."""
    path = Path(model)
    if path.is_dir() and (path / CONFIG).is_file():
        yield path
        return
    with TemporaryDirectory(prefix="msx-plan-") as scratch:
        folder = Path(scratch)
        (folder / CONFIG).write_bytes(hub_file(model, CONFIG, MOST_CONFIG) if is_hub(model) else _config(path, folder))
        yield folder


def _config(model: Path, folder: Path) -> bytes:
    """Raises ClickException. A GGUF file is linked in the folder, too, so that its tensors are checked."""
    try:
        if (file := gguf_in(model)) is not None:
            (folder / f"model{GGUF}").symlink_to(file.absolute())
            return made_files(file, MADE)[0][CONFIG]
        return model.read_bytes() if model.suffix == ".json" and _small(model) else _member(model)
    except (OSError, ArchiveError) as error:
        raise click.ClickException(
            f"{error} Give a folder with a {CONFIG}, that file, a GGUF file, or an archive."
        ) from None


def _small(file: Path) -> bool:
    return file.stat().st_size <= MOST_CONFIG


def _member(model: Path) -> bytes:
    """Raises ArchiveError, OSError."""
    with open_archive(model) as archive:
        if not any(member.path == CONFIG and member.size <= MOST_CONFIG for member in archive.files):
            raise ArchiveError(f"{model} has no {CONFIG} of at most {MOST_CONFIG >> 20} MiB.")
        return archive.read(CONFIG)


def _asked(request: SizingRequest) -> Sizing:
    """Ask a process of its own, which has the engine's arithmetic. Raises ClickException."""
    try:
        done = subprocess.run(_COMMAND, input=msgspec.json.encode(request), capture_output=True, timeout=LIMIT)
        answer = msgspec.json.decode(done.stdout, type=dict[str, msgspec.Raw])
    except subprocess.TimeoutExpired:
        raise click.ClickException(f"the estimate was not made within {LIMIT:g} s.") from None
    except msgspec.DecodeError:
        why = last_line(done.stderr) or f"it ended with exit code {done.returncode}, and has said nothing"
        raise click.ClickException(f"the estimate failed: {why}: {NEEDS if MISSING in why else BUG}") from None
    if "error" in answer:
        raise click.ClickException(msgspec.json.decode(done.stdout, type=SizingRefusal).error)
    return msgspec.json.decode(done.stdout, type=Sizing)


def _described(sizing: Sizing) -> dict[str, object]:
    """Describe it with what the table computes from it."""
    ranks = [{**msgspec.structs.asdict(rank), "free": rank.free} for rank in sizing.ranks]
    return {"estimate": True, "fits": sizing.fits, **msgspec.structs.asdict(sizing), "ranks": ranks}
