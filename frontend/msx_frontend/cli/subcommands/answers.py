"""Prints answers of models on stdout: as they come to files and pipes, without control characters on a terminal, which
would obey them."""

import codecs
import sys

import click

from msx_frontend.visible import visible


class PrintedAnswer:
    """Prints the pieces of one answer as they come. `end` is called behind the last one."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode

    def data(self, piece: bytes) -> None:
        if self._terminal:
            self.text(self._decode(piece))
        else:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()

    def text(self, piece: str) -> None:
        click.echo(visible(piece) if self._terminal else piece, nl=False)

    def end(self) -> None:
        """The prompt of a terminal's shell gets a line of its own."""
        if self._terminal:
            click.echo(visible(self._decode(b"", True)))
