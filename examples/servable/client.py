"""Asks the servable over MindSpore Serving's REST API. Needs only Python."""

import json
import urllib.request
from pathlib import Path

METHODS = {
    "join_texts": [{"first": "one ", "second": "text"}, {"first": "an", "second": "other"}],
    "add": [{"x1": [1.0, 2.0, 3.0, 4.0], "x2": [0.5, 0.5, 0.5, 0.5]}, {"x1": [1.0, 2.0], "x2": [1.0, 2.0]}],
    "add_any": [{"x1": [1, 2, 3, 4], "x2": [0.75, 0.75, 0.75, 0.75]}],
}


def ask(method: str, instances: list[dict[str, object]]) -> dict[str, object]:
    """A failed instance is `{"error_msg": text}` in its place; the status is 200 also then."""
    key = json.loads(Path("key_file.json").read_text())["inference"]["key"]
    body = json.dumps({"instances": instances}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:8080/model/add:{method}", body, {"Authorization": f"Bearer {key}"}
    )
    with urllib.request.urlopen(request) as reply:
        answer: dict[str, object] = json.load(reply)
        return answer


if __name__ == "__main__":
    for method, instances in METHODS.items():
        print(method, json.dumps(ask(method, instances)))
