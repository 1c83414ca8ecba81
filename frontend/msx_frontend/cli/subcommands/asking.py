"""`msx-serve predict`, `chat`, `scale`: a running server of this machine, or another one by --url, is asked."""

import json
import mimetypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from typing import Any, BinaryIO

import click

from msx_client import Client, MsxError
from msx_frontend.cli.subcommands.answers import PrintedAnswer
from msx_frontend.cli.subcommands.selection import selected, selects_server
from msx_frontend.visible import visible

URL = click.option("--url", envvar="MSX_URL", help="Another server's inference address; its key is in MSX_KEY.")
MANAGEMENT_URL = click.option(
    "--url", envvar="MSX_MANAGEMENT_URL", help="Another server's management address; its key is in MSX_MANAGEMENT_KEY."
)


class FileOrJson(click.File):
    """A file, "-" for standard input, or JSON in place of one."""

    name = "file or JSON"

    def __init__(self) -> None:
        super().__init__("rb")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')) or os.path.exists(value):
            return super().convert(value, param, ctx)
        try:
            json.loads(value)
        except ValueError as error:
            self.fail(f"{value[:40]!r} is neither a file nor JSON: {error}.", param, ctx)
        return BytesIO(value.encode())


@click.command()
@click.argument("name")
@click.argument("content", metavar="[FILE|JSON]", type=FileOrJson(), default="-")
@click.option("--version", help="A version other than the default one.")
@click.option("--method", help="A method of the handler.")
@click.option("--type", "kind", help="The content type. Default: by the file's name, else JSON if it is that.")
@URL
@selects_server
def predict(
    name: str,
    content: BinaryIO,
    version: str | None,
    method: str | None,
    kind: str | None,
    url: str | None,
    **flags: Any,
) -> None:
    """Send a FILE, JSON or standard input to the model NAME, and print the answer as it comes."""
    body, answer = content.read(), PrintedAnswer()
    headers = {"content-type": kind or _type_of(getattr(content, "name", ""), body)}
    with client_of(url, **flags) as client:
        for piece in client.stream(name, body, version=version, method=method, headers=headers):
            answer.data(piece)
    answer.end()


@click.command()
@click.argument("name")
@click.option("--system", help="What the model is told before the conversation.")
@click.option("--max-tokens", default=512, show_default=True, type=click.IntRange(1), help="Of each answer.")
@click.option("--temperature", type=click.FloatRange(0))
@URL
@selects_server
def chat(
    name: str, system: str | None, max_tokens: int, temperature: float | None, url: str | None, **flags: Any
) -> None:
    """Talk with the language model NAME, a line a message, until Ctrl-D."""
    messages: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []
    options: dict[str, Any] = {"max_tokens": max_tokens}
    options |= {} if temperature is None else {"temperature": temperature}
    with client_of(url, **flags) as client:
        for line in _lines():
            messages.append({"role": "user", "content": line})
            said, answer = "", PrintedAnswer()
            for piece in client.chat_stream(name, messages, **options):
                said += piece.text
                answer.text(piece.text)
            click.echo()
            messages.append({"role": "assistant", "content": said})


@click.command()
@click.argument("name")
@click.argument("workers", type=click.IntRange(0))
@click.option("--version", help="A version other than the default one.")
@click.option("--stage", help="One stage of the model.")
@click.option("--no-wait", is_flag=True, help="Return before the workers are ready.")
@MANAGEMENT_URL
@selects_server
def scale(
    name: str, workers: int, version: str | None, stage: str | None, no_wait: bool, url: str | None, **flags: Any
) -> None:
    """Give the model NAME so many WORKERS."""
    more: dict[str, Any] = {"stage": stage} if stage else {}
    with client_of(url, management=True, **flags) as client:
        said = client.models.scale(name, workers, version=version, wait=not no_wait, timeout=600.0, **more)
        click.echo(visible(said))


@contextmanager
def client_of(url: str | None, *, management: bool = False, **flags: Any) -> Iterator[Client]:
    """Client of a server. An error of it ends the command with the server's sentence, and with 1."""
    with ExitStack() as stack:
        try:
            made = Client(url, management_url=url if management else None) if url else _of_this_machine(stack, **flags)
            yield stack.enter_context(made)
        except (MsxError, ValueError) as error:
            raise click.ClickException(visible(str(error))) from None


def _of_this_machine(stack: ExitStack, **flags: Any) -> Client:
    info = selected(**flags)
    verify: bool | str = True
    if info.certificate:
        file = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".pem"))  # noqa: SIM115  the stack closes it
        file.write(info.certificate)
        file.flush()
        verify = file.name
    return Client(info.inference, management_url=info.management, key_file=info.key_file, verify=verify)


def _type_of(name: str, content: bytes) -> str:
    if name.endswith(".npy"):
        return "application/x-npy"
    if guessed := mimetypes.guess_type(name)[0]:
        return guessed
    try:
        json.loads(content)
    except ValueError:
        return "application/octet-stream"
    return "application/json"


def _lines() -> Iterator[str]:
    while True:
        if sys.stdin.isatty():
            click.echo(click.style("> ", "cyan"), nl=False)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()
