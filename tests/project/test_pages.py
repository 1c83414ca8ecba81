"""Commands and files that are read from a page, and when two outputs are the same."""

from __future__ import annotations

import pytest

from tests.pages import Block, blocks, files, shows

PAGE = """# A page

```sh
one --a \\
    --b 'x'    # why
two
```

It says

```
done
```

## No output of theirs

```
GET /
```

```console
$ three \\
      --c
it says
$ four
```

This is the whole network.
`net.py`:

```python
# a comment
x = 1
```

What a server writes into `file.json`:

```json
{}
```

```yaml
# two.yaml
a: 1
```
"""


def test_commands_and_their_output() -> None:
    first = Block(("one --a --b 'x'    # why", "two"), "done\n")
    assert blocks(PAGE) == [first, Block(("three --c",), "it says\n"), Block(("four",))]


def test_files() -> None:
    assert files(PAGE) == {"net.py": "# a comment\nx = 1\n", "two.yaml": "# two.yaml\na: 1\n"}


@pytest.mark.parametrize(
    ("actual", "shown"),
    [
        ("started (pid 4711).\n", "started (pid 18989).\n"),
        ("  state   /tmp/x/models/.msx/state.db", "state /home/me/models/.msx/state.db"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("(zip, 167.2 KiB) 99.9%", "(zip, 41 KiB) 100%"),
        ("one line\nanother", "one\nline another"),
        ("a\nb\nc\nd", "a\n…\nd"),
        ("sha256 9f2c77", "sha256 9f2c…"),
        ("anything", ""),
    ],
)
def test_the_same_but_for_what_differs_from_run_to_run(actual: str, shown: str) -> None:
    assert shows(actual, shown)


@pytest.mark.parametrize(
    ("actual", "shown"),
    [
        ("elements: [-48.0]", "elements: [-47.0]"),
        ("10 operators", "14 operators"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8081"),
        ("/tmp/models/.msx/state.db", "/home/me/key_file.json"),
        ("b a", "a b"),
        ("", "hello"),
    ],
)
def test_what_differs(actual: str, shown: str) -> None:
    assert not shows(actual, shown)
