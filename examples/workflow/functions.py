"""The functions of the workflow: `clean` before the two models, `join` behind them."""

import json

from msx_sdk import InvalidInput


def clean(data, context):
    return [_words(row.get("body")) for row in data]


def join(data, context):
    """The answers of both models, under the names of their nodes."""
    return [{"language": row["language"].decode(), **json.loads(row["mood"])} for row in data]


def _words(text):
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("Send a review as text/plain.")
    return "".join(char for char in text.lower() if char.isalpha() or char == " ")
