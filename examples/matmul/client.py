"""Sends a matrix of ones [128, 96] and prints what the elements of the answer are. Needs only Python."""

import argparse
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

Matrix = list[list[float]]


def multiply(url: str, x: Matrix, token: str | None) -> Matrix:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(x).encode(), headers)) as reply:
        answer: Matrix = json.load(reply)
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
    parser.add_argument("--url", default="http://127.0.0.1:8080/predictions/matmul")
    parser.add_argument("--token", help="default: the inference key of ./key_file.json, if there is one")
    options = parser.parse_args()
    token = options.token or inference_key()
    try:
        y = multiply(options.url, [[1.0] * 96] * 128, token)
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.code} {error.read().decode()}{keyless(token)}")
    except OSError as error:
        sys.exit(str(error))
    print(f"y [{len(y)}, {len(y[0])}], elements: {sorted({value for row in y for value in row})}")


if __name__ == "__main__":
    main()
