"""Prints the model's text as it comes, token by token. Needs only Python."""

import argparse
import codecs
import http.client
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def generate(url: str, request: dict[str, Any], token: str | None = None) -> Iterator[str]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    body = json.dumps(request).encode()
    characters = codecs.getincrementaldecoder("utf-8")()
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:
        while chunk := reply.read1():
            yield characters.decode(chunk)


def inference_key() -> str | None:
    """The key of key_file.json, which the server writes into the folder where it was started."""
    file = Path("key_file.json")
    return json.loads(file.read_text())["inference"]["key"] if file.is_file() else None


def keyless(token: str | None) -> str:
    """The remedy, where a missing key may be the reason of a refusal."""
    return "" if token else "No key was sent: run this where the server was started (key_file.json), or give --token."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompt", nargs="?", default="Exceptions")
    parser.add_argument("--url", default="http://127.0.0.1:8080/predictions/llama")
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--token", help="default: the inference key of ./key_file.json, if there is one")
    options = vars(parser.parse_args())
    url, token = options.pop("url"), options.pop("token") or inference_key()
    request = {name: value for name, value in options.items() if value is not None}
    print(request["prompt"], end="", flush=True)
    try:
        for text in generate(url, request, token):
            print(text, end="", flush=True)
    except urllib.error.HTTPError as error:
        sys.exit(f"\n{error.code} {error.read().decode()}{keyless(token)}")
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"\n{error}")
    print()


if __name__ == "__main__":
    main()
