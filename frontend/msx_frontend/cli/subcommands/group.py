"""The words that `msx-serve` knows as its first argument. A folder of such a name is served as `./status`."""

from importlib import import_module

import click

WORDS = {
    "stop": ("running", "Stop the running server."),
    "upgrade": ("upgrading", "Put a new server in the place of the running one, and keep its workers."),
    "restart": ("upgrading", "Start the running server anew, and keep its workers."),
    "status": ("running", "The running servers, their models and workers."),
    "models": ("running", "The models of a running server."),
    "backup": ("running", "Copy the state of a server into a folder."),
    "logs": ("log_lines", "The log of a running server."),
    "predict": ("asking", "Ask a model of a running server."),
    "chat": ("asking", "Talk with a language model of a running server."),
    "scale": ("asking", "Change the number of workers of a model."),
    "jobs": ("jobs", "Requests that are answered later: list, show, result, cancel."),
    "plan": ("planning", "What a language model takes of NPUs, before there are any."),
    "link-names": ("linking", "Make links to the commands by TorchServe's names in a folder."),
    "examples": ("copying", "Copy the examples, configurations and docs into a folder."),
}
"""The module of each, and what it does. `doctor` is not one of them: it takes the flags of the server."""


class _Words(click.Group):
    """Modules are imported by the words that need them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(WORDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in WORDS:
            return None
        command: click.Command = getattr(import_module(f"{__package__}.{WORDS[name][0]}"), name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, said) for name, (_, said) in WORDS.items()])


words = _Words("msx-serve")
