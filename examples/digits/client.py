"""Sends image files to the model and prints what it sees in them. Needs only Python."""

import argparse
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path


def classify(url: str, image: bytes, token: str | None) -> dict[str, float]:
    """Label to probability, most probable first."""
    headers = {"Content-Type": "image/png"} | ({"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(urllib.request.Request(url, image, headers)) as reply:
        answer: dict[str, float] = json.load(reply)
        return answer


def inference_key() -> str | None:
    """The key of key_file.json, which the server writes into the folder where it was started."""
    file = Path("key_file.json")
    return json.loads(file.read_text())["inference"]["key"] if file.is_file() else None


def keyless(token: str | None) -> str:
    """The remedy, where a missing key may be the reason of a refusal."""
    return "" if token else "No key was sent: run this where the server was started (key_file.json), or give --token."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--url", default="http://127.0.0.1:8080/predictions/digits")
    parser.add_argument("--token", help="default: the inference key of ./key_file.json, if there is one")
    options = parser.parse_args()
    token = options.token or inference_key()
    for file in options.files:
        try:
            answer = classify(options.url, file.read_bytes(), token)
        except urllib.error.HTTPError as error:
            sys.exit(f"{file.name}: {error.code} {error.read().decode()}{keyless(token)}")
        except OSError as error:
            sys.exit(f"{file.name}: {error}")
        (label, probability), *_ = answer.items()
        print(f"{file.name:12} {label:8} {probability:.1%}")


if __name__ == "__main__":
    main()
