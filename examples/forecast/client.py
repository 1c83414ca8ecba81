"""Sends the last two days of a load, and draws what comes next: python client.py [FILE with a number a line]."""

import argparse
import sys
from pathlib import Path

from series import load

from msx_client import Client, MsxError

WIDTH = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="default: a series that the example makes up")
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    options = parser.parse_args()
    try:
        given = [float(line) for line in options.file.read_text().split()] if options.file else load(96, 7).tolist()
    except (OSError, ValueError) as error:
        sys.exit(f"{options.file}: {error}")
    with Client(options.url) as client:  # the key comes from ./key_file.json, where the server was started
        try:
            answer = client.predict("forecast", {"hours": given})
        except MsxError as error:
            sys.exit(str(error))
    top = max(map(abs, answer["hours"]))
    for hour, (value, error) in enumerate(zip(answer["hours"], answer["error"], strict=True), 1):
        print(f"+{hour:2} h {value:8.1f} ± {error:5.1f}  {'█' * round(abs(value) / top * WIDTH)}")


if __name__ == "__main__":
    main()
