"""Parsers of texts whose "b" is thought, and whose "d" and "e" are calls; "f" is one that goes on."""

from types import SimpleNamespace
from typing import Any


class LetterParser:
    tools = ""

    def __init__(self, tokenizer: Any, tools: Any, *, chat_template_kwargs: Any, model_config: Any) -> None:
        self.has_tools, self.prompt = bool(tools), [0]

    def adjust_request(self, request: Any) -> Any:
        request.skip_special_tokens = not request.tools
        return request

    def set_prompt_token_ids(self, prompt_token_ids: list[int]) -> None:
        self.prompt = prompt_token_ids

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: list[int],
        request: Any,
        prompt_token_ids: list[int] | None = None,
        *,
        finished: bool,
    ) -> Any:
        if self.tools == "broken":
            raise KeyError("x")
        calls = [self._delta(letter) for letter in delta_text if letter in "def" and self.has_tools]
        thought = "".join(letter for letter in delta_text if letter == "b")
        content = "".join(letter for letter in delta_text if letter not in "bdef" or (letter in "def" and not calls))
        if not (thought or content or calls):
            return None
        return SimpleNamespace(reasoning=thought or None, content=content or None, tool_calls=calls)

    def parse(
        self, model_output: str, request: Any, enable_auto_tools: bool = False, model_output_token_ids: Any = ()
    ) -> Any:
        made = self.parse_delta(model_output, [], request, finished=True)
        calls = [SimpleNamespace(id=None, name="f", arguments="{}") for call in made.tool_calls if call.function.name]
        return made.reasoning, made.content, calls

    @staticmethod
    def _delta(letter: str) -> SimpleNamespace:
        number = "de".find(letter)
        if number < 0:
            return SimpleNamespace(index=1, id="again", function=SimpleNamespace(name=None, arguments="{}"))
        return SimpleNamespace(index=number, id=None, function=SimpleNamespace(name="f", arguments=None))


class ParserManager:
    @classmethod
    def get_parser(
        cls,
        tool_parser_name: str | None = None,
        reasoning_parser_name: str | None = None,
        enable_auto_tools: bool = False,
        is_harmony: bool = False,
        tokenizer: Any = None,
    ) -> Any:
        if tool_parser_name == "unfit":
            raise TypeError("the tokenizer has no token <call>")
        return type("Made", (LetterParser,), {"tools": tool_parser_name})
