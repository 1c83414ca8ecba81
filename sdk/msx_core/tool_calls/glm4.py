"""GLM 4's calls: the name of a tool in a line of its own, and its arguments as an object behind it. No mark opens them:
a line is a call if it is the name of one of the tools, and an object follows."""

from collections.abc import Generator, Iterator

from msx_core.tool_calls.members import ObjectReader
from msx_core.tool_calls.parts import CallNumbers, Part, Schemas, ToolCall, ToolCallReader, call_id

NAME = "glm4"
TEMPLATE_MARKS: tuple[str, ...] = ("请使用 Json 格式表示调用的参数",)
NEEDS_SPECIAL_TOKENS = False


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    return LinesWithCalls(CallNumbers(schemas, parallel=parallel, new_id=call_id))


class LinesWithCalls:
    """White space around calls is not content."""

    def __init__(self, numbers: CallNumbers) -> None:
        self._numbers = numbers
        self._held = ""
        self._at_start = True
        """Only white space stands before, in this line."""
        self._arguments: ObjectReader | None = None
        self._begun: ToolCall | None = None

    def feed(self, text: str) -> Iterator[Part]:
        text, self._held = self._held + text, ""
        while text:
            text = yield from self._outside(text) if self._arguments is None else self._in_call(text, self._arguments)

    def finish(self) -> Iterator[Part]:
        if self._held.strip() or (self._held and not self._numbers.count):
            yield self._held

    def _outside(self, text: str) -> Generator[Part, None, str]:
        """-> The text that is not read yet."""
        body = text.lstrip()
        space = text[: len(text) - len(body)]
        if self._at_start or "\n" in space or not body:
            rest = self._call(body)
            if rest is None:
                self._held = text
                return ""
            if rest:
                return rest
        line = body.partition("\n")[0].rstrip()
        yield space + line
        self._at_start = False
        return body[len(line) :]

    def _call(self, body: str) -> str | None:
        """Begins a call. -> The text of its arguments; nothing if there is no call; None while that is not known."""
        line, end, rest = body.partition("\n")
        name, rest = line.strip(), rest.lstrip()
        if not end:
            return None if any(known.startswith(name) for known in self._numbers.schemas) or not name else ""
        if name not in self._numbers.schemas:
            return ""
        if rest.startswith("{"):
            self._arguments, self._begun = ObjectReader(), self._numbers.begin(name)
            return rest
        return "" if rest else None

    def _in_call(self, text: str, arguments: ObjectReader) -> Generator[Part, None, str]:
        _, taken = arguments.feed(text)
        if taken and self._begun is not None:
            yield self._begun._replace(arguments=text[:taken])
            self._begun = ToolCall(self._begun.number, "")
        if arguments.over or arguments.broken:
            self._arguments, self._at_start = None, True
        return text[taken:]
