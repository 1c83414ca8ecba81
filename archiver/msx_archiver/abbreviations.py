"""Options may be abbreviated if the abbreviation is unique, as argparse allows in torch-model-archiver."""

from collections.abc import Collection, Sequence

import click


class AbbreviatedOptions(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = [name for option in self.get_params(ctx) for name in option.opts]
        return super().parse_args(ctx, whole_options(args, known))


def whole_options(args: Sequence[str], known: Collection[str], first: Collection[str] = ()) -> list[str]:
    """The arguments with whole names up to `--`. An abbreviation means one of `first` if it is unique there."""
    end = args.index("--") if "--" in args else len(args)
    return [*(_whole(arg, known, first) for arg in args[:end]), *args[end:]]


def _whole(arg: str, known: Collection[str], first: Collection[str]) -> str:
    name, equals, value = arg.partition("=")
    if len(name) < len("--x") or not name.startswith("--") or name in known:
        return arg
    for options in (first, known):
        meant = [option for option in options if option.startswith(name)]
        if len(meant) == 1:
            return f"{meant[0]}{equals}{value}"
    return arg
