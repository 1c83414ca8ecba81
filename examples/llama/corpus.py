"""The English that every Python ships: the language reference behind `help()`, reduced to headings and prose."""

import re
from collections.abc import Iterator
from pydoc_data.topics import topics

BULLET = re.compile(r"^(?:\* |\d+\. )")
CODE = re.compile(r'"([^"]+)"')
EMPHASIS = re.compile(r"(?<![\w*])\*{1,2}([\w][^*\n]*?)\*{1,2}(?![\w*])")
HEADING = re.compile(r"^([A-Z][^\n]*)\n[*=~^-]+$")
NOT_PROSE = re.compile(r"::=|>>>|<-|\.\.\.\s|^(Note|Changed in|New in|Added in|Deprecated|See also|PEP)\b")


def documents() -> list[list[str]]:
    """The topics in order, each a list of headings and paragraphs, every one on one line and only once."""
    seen: set[str] = set()  # topics quote one another
    found = []
    for _, text in sorted(topics.items()):
        lines = [line for line in readable(text) if line not in seen]
        seen.update(lines)
        found.append(lines)
    return [lines for lines in found if lines]


def readable(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        if heading := HEADING.match(paragraph.strip()):
            yield clean(heading[1])
        elif is_prose(line := clean(paragraph)):
            yield line


def clean(paragraph: str) -> str:
    """Joins the wrapped lines and removes the markup: bullets, emphasis, quotes around code, footnote numbers."""
    line = re.sub(r"\s+", " ", re.sub(r"(?<=\w)-\n\s*", "-", paragraph)).strip()
    line = CODE.sub(r"\1", EMPHASIS.sub(r"\1", BULLET.sub("", line)))
    return re.sub(r" ?\[\d+\]", "", line)


def is_prose(line: str) -> bool:
    words = re.findall(r"[A-Za-z]{2,}", line)
    letters = sum(character.isalpha() or character == " " for character in line)
    return (
        len(words) >= 8
        and (line[0].isupper() or line[0] == "“")
        and line[-1] in ".:?!)"
        and letters >= 0.85 * len(line)
        and not NOT_PROSE.search(line)
    )
