"""`msx-serve`: torchserve's flags. Heavy modules are imported by the commands that need them."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from msx_frontend import __version__
from msx_frontend.cli.first_process import begin, is_first_process, run_below
from msx_frontend.cli.process_env import prepare_process

COMPLETE = "_MSX_SERVE_COMPLETE"
"""Variable of click, set by the shell that completes a line."""
PATH = click.Path(path_type=Path)
_ACTION = "msx_frontend.action"
_SCRIPT_ARGUMENTS = "msx_frontend.script_arguments"
_FIRST = "msx_frontend.first"
"""The first of the arguments."""
DOCTOR = "doctor"
TORCHSERVES = (
    *("--version", "--start", "--stop", "--ts-config", "--model-store", "--workflow-store", "--models", "--log-config"),
    *("--cpp-log-config", "--foreground", "--no-config-snapshots", "--ncs", "--plugins-path", "--ppath"),
    *("--disable-token-auth", "--dt", "--enable-model-api"),
)
"""TorchServe's flags: what is a unique beginning there is one here."""

T = TypeVar("T")


def _action(*names: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A flag that excludes the other actions, as in torchserve."""
    return click.option(*names, is_flag=True, expose_value=False, callback=_chosen, help=help)


def _chosen(ctx: click.Context, option: click.Parameter, given: T) -> T:
    if given and (first := ctx.meta.setdefault(_ACTION, option.name)) != option.name:
        raise click.UsageError(f"--{first} and --{option.name} exclude each other: give one of them.", ctx)
    return given


DOCTOR_HELP = """Usage: msx-serve doctor [OPTIONS]

  Check what keeps a server from running: its configuration, and all that a
  start reads (keys, certificates, state, plugins, models, ...); of this machine
  Python, MindSpore, CANN and its driver against a table of versions, NPUs,
  ports, file limits, disk, time and Ray. What fails says what to do. What
  killed servers have left is removed.

  It takes the flags and the configuration of the server that it checks the
  machine for, such as --ts-config, --model-store and --set: `msx-serve --help`
  lists them. Nothing is started, and nothing else is changed.

  Exit code: 0, also with warnings; 1 if a check has failed."""


class _Command(click.Command):
    """Command `msx-serve`: arguments after `--script FILE` are the script's; a first word is a command of its own."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> Any:
        from msx_frontend.cli.subcommands.group import WORDS, words

        given = sys.argv[1:] if args is None else list(args)
        typed = os.environ.get("COMP_WORDS", "").split()[1:] if COMPLETE in os.environ else given
        if typed and typed[0] in WORDS:
            return words.main(given, *more, **options)
        if given[:1] == [DOCTOR] and {*given[1:]} & {"-h", "--help"}:
            click.echo(DOCTOR_HELP)
            return 0
        return super().main(args, *more, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from msx_frontend.cli.script_arguments import divided

        ctx.meta[_FIRST] = args[0] if args else ""
        own, ctx.meta[_SCRIPT_ARGUMENTS] = divided(args)
        return super().parse_args(ctx, self._whole(ctx, own))

    def _whole(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments without abbreviations of flags."""
        known = [name for option in self.get_params(ctx) for name in option.opts]
        if all(arg.partition("=")[0] in known for arg in args if arg.startswith("--")):
            return args
        from msx_archiver.abbreviations import whole_options

        return whole_options(args, known, TORCHSERVES)


def _completed(ctx: click.Context, argument: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Words where the first argument stands, and files."""
    from msx_frontend.cli.subcommands.group import WORDS

    words = (*WORDS, DOCTOR) if not ctx.params.get("more_models") else ()
    return [CompletionItem(one) for one in words if one.startswith(incomplete)] + [CompletionItem(incomplete, "file")]


@click.command(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@_action("--start", help="Start the server (the default).")
@_action("--stop", help="Stop the running server.")
@_action("--status", help="Show the running servers and their models.")
@click.option(
    "--backup",
    type=PATH,
    metavar="DIR",
    callback=_chosen,
    help="Copy the state into DIR, whether the server runs or not.",
)
@_action("-v", "--version", help="Show the version.")
@click.option(
    "--models", multiple=True, metavar="MODELS", help="file.mar, name=file.mar, a path, `all` or `none`; several."
)
@click.option(
    "--servables",
    type=PATH,
    multiple=True,
    metavar="DIR",
    help="Serve every servable of MindSpore Serving in DIR, with all its versions; several.",
)
@click.option(
    "--huggingface",
    multiple=True,
    metavar="NAME=DIR",
    help="Serve the language model in DIR, a folder in Hugging Face's layout or a *.gguf, under NAME; several.",
)
@click.option(
    "--llm-serving",
    type=PATH,
    metavar="YAML",
    help="Serve the model of llm-serving in YAML, on its server_port; --huggingface DIR beside it are its weights.",
)
@click.option(
    "--engine",
    type=click.Choice(("auto", "msx", "vllm")),
    help="Engine of models in Hugging Face's layout that are not packed. Default: auto, MSX's own for families that it "
    "knows, else vLLM's.",
)
@click.option("--model-store", type=PATH, help="Folder with the archives. Default: here.")
@click.option(
    "--state-dir",
    type=PATH,
    help="Folder that the server writes: state, logs, caches. Default: .msx in the model store.",
)
@click.option("--workflow-store", type=PATH, help="Folder with the workflow archives. Default: the model store.")
@click.option(
    "--plugins-path", "--ppath", metavar="FOLDERS", help="Folders with the packages of plugins, comma-separated."
)
@click.option(
    "--cluster-address", metavar="ADDRESS", help="Run workers on a Ray cluster: auto, host:port or ray://host:port."
)
@click.option("--ts-config", type=PATH, help="A config.properties file.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A key of config.properties and its value, which beats the file's; several.",
)
@click.option("--wait", is_flag=True, help="With --start: return when every model is ready, or with 1 and why not.")
@click.option(
    "--wait-timeout",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest time that --wait waits.",
)
@click.option(
    "--host",
    metavar="HOST",
    help="Of a PATH that is served as it is: where it listens. Default: the addresses of config.properties, else "
    "127.0.0.1.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65533),
    help="Of a PATH: the inference port, before those of management and metrics; 0 for free ones. Default: those of "
    "config.properties, else 8080.",
)
@click.option("--weights", type=PATH, help="Of a PATH that is the Python file of a network or a handler: its weights.")
@click.option("--workers", type=click.IntRange(0), help="Of a PATH: the number of workers.")
@click.option("--reload", is_flag=True, help="Of a PATH: load it again whenever its files change.")
@click.option("--foreground", is_flag=True, help="Stay in the foreground and log to the terminal.")
@click.option("--ncs", "--no-config-snapshots", "ncs", is_flag=True, help="Neither restore nor keep the state.")
@click.option("--log-config", type=PATH, help="A logging configuration (YAML, JSON or ini).")
@click.option("--cpp-log-config", type=PATH, help="Accepted without effect: there are no C++ workers.")
@click.option("--enable-model-api", is_flag=True, default=None, help="Allow registering and unregistering models.")
@click.option("--disable-token-auth", "--dt", is_flag=True, default=None, help="Take requests without a token.")
@click.option(
    "--script",
    type=PATH,
    metavar="FILE [ARGS]...",
    help="Run a start script of MindSpore Serving; what follows are its arguments.",
)
@click.option("--script-channel", type=int, hidden=True)
@click.argument("more_models", nargs=-1, metavar="[PATH | MODELS...]", shell_complete=_completed)
@click.pass_context
def main(ctx: click.Context, /, **options: Any) -> None:
    """Serve MindSpore models packed by msx-archiver.

    `msx-serve PATH` serves a net.mindir, a model.gguf, a handler.py, a net.py with --weights net.ckpt or a folder as it
    is, in the foreground: a model in Hugging Face's layout, a servable, or a handler with its model-config.yaml. So
    are hf://org/name, modelscope://org/name, s3://bucket/prefix and obs://bucket/prefix (extra hub).
    Without --foreground, `msx-serve` returns as soon as the server answers; with --wait, when its models do.

    \b
    Words instead of flags (each has --help):
      stop, status, models, logs, backup    a running server
      upgrade, restart                      another one in its place
      predict, chat, scale, jobs            its models; requests that are answered later
      doctor, plan, examples                this machine; NPUs to buy; examples
      link-names                            the commands by TorchServe's names
    `msx-serve doctor` takes the flags of the server that it checks the machine for.
    """
    action = ctx.meta.get(_ACTION, "start")
    if action == "version":
        from msx_frontend.commit import describe_commit

        click.echo(f"MSX Version is {__version__} ({describe_commit()})")
        return
    flags = {name: options.pop(name) for name in ("host", "port", "weights", "workers", "reload")}
    if options["more_models"][:1] == (DOCTOR,) and (ctx.meta[_FIRST] == DOCTOR or not options["models"]):
        sys.exit(_doctor(ctx, options))
    served = _served(ctx, action, options, flags)
    if action == "start" and is_first_process():
        if served is not None or options["script"] is not None:
            sys.exit(run_below(sys.argv[1:]))
        begin()
        options["foreground"] = True
    from msx_frontend.cli import commands
    from msx_frontend.cli.options import Options

    options.pop("cpp_log_config")
    options["models"] = (*options.pop("models"), *options.pop("more_models"))
    script, channel = options.pop("script"), options.pop("script_channel")
    settled = Options(**options, argv=sys.argv[1:], env=os.environ)
    if served is not None:
        sys.exit(_serve(settled, served, flags))
    if channel is not None:
        prepare_process()
        sys.exit(_of_scripts("serve")(settled, channel))
    if script is not None:
        from msx_frontend.cli.script_arguments import FLAGS_BEFORE, server_flags

        if (_ACTION in ctx.meta and action != "start") or _given(ctx) - {"script", "foreground", *FLAGS_BEFORE}:
            raise click.UsageError(
                "only --ts-config, --log-config, --plugins-path and --state-dir may stand before --script; "
                "what follows its file is the script's.",
                ctx,
            )
        sys.exit(_of_scripts("run")(script, ctx.meta[_SCRIPT_ARGUMENTS], server_flags(settled), settled.env))
    sys.exit(getattr(commands, action)(settled))


def _of_scripts(name: str) -> Callable[..., int]:
    """A function for start scripts of MindSpore Serving, from the package that knows them."""
    from msx_core.entry_points import load_named
    from msx_frontend.installed_plugins import START_SCRIPTS

    function: Callable[..., int] | None = load_named(START_SCRIPTS, name)
    if function is None:
        raise click.UsageError("No installed package knows start scripts: install msx-serve anew.")
    return function


def _served(ctx: click.Context, action: str, options: dict[str, Any], flags: dict[str, Any]) -> Path | str | None:
    """The only argument, if it is something to serve as it is: a path, or the URL of a hub's model. Raises UsageError
    for its flags without it."""
    named = options["more_models"]
    if action == "start" and len(named) == 1 and not options["models"] and ("/" in named[0] or Path(named[0]).exists()):
        from msx_frontend.archives.guess import is_unpacked
        from msx_frontend.archives.schemes import is_hub

        if is_hub(named[0]):
            if flags["weights"] is not None:
                raise click.UsageError("--weights is for a Python file, which a model of a hub is not.", ctx)
            if flags["reload"]:
                raise click.UsageError("--reload watches files of this machine, which a model of a hub is not.", ctx)
            return str(named[0])
        if is_unpacked(Path(named[0])):
            return Path(named[0])
    if given := [f"--{name}" for name, value in flags.items() if value not in (None, False)]:
        raise click.UsageError(f"{', '.join(given)}: only for a PATH that is served as it is.", ctx)
    return None


def _serve(options: Any, source: Path | str, flags: dict[str, Any]) -> int:
    from msx_frontend.cli.serve.run import serve
    from msx_frontend.cli.serve.session import Serving

    chosen = {name: value for name, value in flags.items() if value is not None}
    if isinstance(source, str):
        return serve(options, Serving(Path(), url=source, wait=options.wait, **chosen))
    return serve(options, Serving(source, wait=options.wait, **chosen))


def _given(ctx: click.Context) -> set[str]:
    from click.core import ParameterSource

    return {name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def _doctor(ctx: click.Context, options: dict[str, Any]) -> int:
    from msx_frontend.cli.doctor.doctor import doctor
    from msx_frontend.cli.options import Options

    others = options["more_models"][1:]
    if _ACTION in ctx.meta or (others and not options["models"]):
        raise click.UsageError("`msx-serve doctor` checks the machine, and does nothing else; flags may follow.", ctx)
    other = ("cpp_log_config", "more_models", "script", "script_channel")
    known = {name: value for name, value in options.items() if name not in other}
    known["models"] = (*options["models"], *others)
    return doctor(Options(**known, argv=sys.argv[1:], env=os.environ))


if __name__ == "__main__":
    main()
