"""Options may be abbreviated if the abbreviation is unique, as argparse allows in torch-model-archiver."""

import click


class AbbreviatedOptions(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = [name for option in self.get_params(ctx) for name in option.opts if name.startswith("--")]
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*(_whole(arg, known) for arg in args[:end]), *args[end:]])


def _whole(arg: str, known: list[str]) -> str:
    name, equals, value = arg.partition("=")
    meant = [option for option in known if option.startswith(name)]
    if len(name) < len("--x") or not name.startswith("--") or name in known or len(meant) != 1:
        return arg
    return f"{meant[0]}{equals}{value}"
