"""A chat in the terminal, over the server's OpenAI API: answers stream in as they are made. An empty line ends it."""

import http.client
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import click
from client import inference_key, keyless
from rich.console import Console
from rich.live import Live
from rich.text import Text

Messages = list[dict[str, str]]


def answer(url: str, token: str | None, request: dict[str, Any]) -> Iterator[str]:
    """The pieces of one answer. Raises OSError, or RuntimeError with the server's own words."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    body = json.dumps({**request, "stream": True}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/chat/completions", body, headers)) as reply:
        for line in reply:
            data = line.decode().removeprefix("data:").strip()
            if data and data != "[DONE]":
                yield piece(json.loads(data))


def piece(event: dict[str, Any]) -> str:
    if "error" in event:
        raise RuntimeError(event["error"]["message"])
    return "".join(choice["delta"].get("content") or "" for choice in event["choices"])


def show(console: Console, pieces: Iterator[str]) -> str:
    text = ""
    with Live(console=console, refresh_per_second=12) as live:
        for part in pieces:
            text += part
            live.update(Text(text, style="green"))
    return text


def why(error: Exception, key: str | None) -> str:
    if not isinstance(error, urllib.error.HTTPError):
        return str(error)
    return f"{error.read().decode(errors='replace')}\n{keyless(key)}".rstrip()


@click.command(help=__doc__)
@click.option("--url", default="http://127.0.0.1:8080", show_default=True)
@click.option("--model", default="llama", show_default=True)
@click.option("--token", help="Default: the inference key of ./key_file.json, if there is one.")
@click.option("--max-tokens", default=96, show_default=True)
@click.option("--temperature", default=0.7, show_default=True)
@click.option("--remember", is_flag=True, help="Send what was said before, too: this small model reads 256 tokens.")
def main(url: str, model: str, token: str | None, max_tokens: int, temperature: float, remember: bool) -> None:
    console = Console()
    messages: Messages = []
    limits = {"model": model, "max_tokens": max_tokens, "temperature": temperature}
    while said := ask(console):
        messages = [*(messages if remember else []), {"role": "user", "content": said}]
        key = token or inference_key()
        try:
            text = show(console, answer(url, key, {**limits, "messages": messages}))
        except (OSError, RuntimeError, http.client.HTTPException) as error:
            console.print(Text(why(error, key), style="red"))
            if not sys.stdin.isatty():
                sys.exit(1)
            continue
        messages.append({"role": "assistant", "content": text})


def ask(console: Console) -> str:
    try:
        return console.input("[bold]you>[/bold] " if sys.stdin.isatty() else "").strip()
    except (EOFError, KeyboardInterrupt):
        return ""


if __name__ == "__main__":
    main()
