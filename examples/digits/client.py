"""Sends image files to the model and prints what it sees in them: python client.py build/*.png."""

import argparse
import sys
from pathlib import Path

from msx_client import Client, MsxError

TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--model", default="digits")
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--token", help="default: the inference key of ./key_file.json, where the server was started")
    options = parser.parse_args()
    with Client(options.url, key=options.token) as client:
        for file in options.files:
            print(f"{file.name:12} {classify(client, options.model, file)}")


def classify(client: Client, model: str, file: Path) -> str:
    """The most probable label; ends the program where there is none."""
    headers = {"Content-Type": TYPES.get(file.suffix.lower(), "application/octet-stream")}
    try:
        answer: dict[str, float] = client.predict(model, file.read_bytes(), headers=headers)
    except (MsxError, OSError) as error:
        sys.exit(f"{file.name}: {error}")
    (label, probability), *_ = answer.items()
    return f"{label:8} {probability:.1%}"


if __name__ == "__main__":
    main()
