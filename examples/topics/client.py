"""Asks for the topics of texts: python client.py "rain is expected" "the team won"."""

import argparse
import sys

from msx_client import Client, MsxError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    options = parser.parse_args()
    with Client(options.url) as client:  # the key comes from ./key_file.json, where the server was started
        try:
            answer = client.predict("topics", {"texts": options.texts})
        except MsxError as error:
            sys.exit(str(error))
    for text, topic in zip(options.texts, answer["topics"], strict=True):
        print(f"{topic['topic']:10} {topic['scores'][topic['topic']]:6.1%}  {text}")


if __name__ == "__main__":
    main()
