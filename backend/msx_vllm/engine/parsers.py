"""vLLM's parsers of tool calls and reasoning, which `toolParser: vllm:NAME` and `reasoningParser: vllm:NAME` choose."""

from typing import Any

from pydantic import ValidationError
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser import ParserManager
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager

from msx_core.statuses import PREDICTION_FAILED
from msx_core.tool_calls.parts import call_id
from msx_core.values import near_miss
from msx_sdk.errors import HandlerLoadError, InvalidInput, PredictionError
from msx_sdk.generation import CallPiece, GenerateRequest, MessageDelta, ParseOptions
from msx_vllm.outputs import GrownText
from msx_vllm.parser_names import ParserNames

GPT_OSS = "gpt_oss"
"""vLLM reads this family's texts by a parser of its own."""


class EngineParsers:
    """The parsers of one model. Raises HandlerLoadError for a name that vLLM does not know, and for a parser that does
    not take the model's tokenizer."""

    def __init__(self, engine: Any, names: ParserNames) -> None:
        _check("toolParser", names.tools, ToolParserManager.list_registered())
        _check("reasoningParser", names.reasoning, ReasoningParserManager.list_registered())
        self._tokenizer, self._config = engine.get_tokenizer(), engine.model_config
        try:
            self._parser = ParserManager.get_parser(
                tool_parser_name=names.tools or None,
                reasoning_parser_name=names.reasoning or None,
                enable_auto_tools=bool(names.tools),
                is_harmony=engine.model_config.hf_config.model_type == GPT_OSS,
                tokenizer=self._tokenizer,
            )
        except Exception as error:  # a parser is a program, which may fail in any way on a tokenizer
            raise HandlerLoadError(
                f"{names}: vLLM's parser does not fit the model: {error.__cause__ or error}"
            ) from error

    def parsing(self, request: GenerateRequest, options: ParseOptions) -> "Parsing":
        """Raises InvalidInput for tools that vLLM does not take."""
        offered = {"tools": request.tools, "tool_choice": "auto"} if request.tools else {"tool_choice": "none"}
        try:
            asked = ChatCompletionRequest(messages=[], parallel_tool_calls=options.parallel, **offered)
        except ValidationError as error:
            raise InvalidInput(f"tools: vLLM does not take them: {error.errors()[0]['msg']}") from None
        asked.messages = request.messages or []
        asked.chat_template_kwargs = request.chat_template_kwargs
        return Parsing(self._made, asked, options)

    def _made(self, asked: Any) -> Any:
        kwargs = asked.chat_template_kwargs
        return self._parser(self._tokenizer, asked.tools, chat_template_kwargs=kwargs, model_config=self._config)


class Parsing:
    """Parses the texts of one request, each with a parser of its own: parsers remember what they have read."""

    def __init__(self, make: Any, asked: Any, options: ParseOptions) -> None:
        self._make, self._options = make, options
        first = make(asked)
        self._asked = first.adjust_request(asked)
        self._parsers: dict[int, Any] = {0: first}
        self._begun: set[tuple[int, int]] = set()
        """Texts and numbers of the calls that have a name."""

    @property
    def keeps_special(self) -> bool:
        """Whether the texts must keep special tokens for the parser."""
        return not self._asked.skip_special_tokens

    def message(self, text: GrownText, prompt: list[int], *, stream: bool) -> MessageDelta:
        """The part of the message that the text's growth adds. Raises PredictionError where the parser fails."""
        parser = self._parsers.get(text.index) or self._another(text.index)
        try:
            found = self._grown(parser, text, prompt) if stream else self._whole(parser, text, prompt)
        except Exception as error:  # a parser is a program, which may fail in any way on what a model writes
            raise PredictionError(PREDICTION_FAILED, f"vLLM's parser failed at the text: {error!r}") from error
        reasoning, content, calls = found
        told = [call for call in calls if self._options.parallel or not call.number]
        return MessageDelta(
            reasoning=reasoning or "" if self._options.reasoning else "", content=content or "", calls=tuple(told)
        )

    def _another(self, index: int) -> Any:
        self._parsers[index] = self._make(self._asked)
        return self._parsers[index]

    def _grown(self, parser: Any, text: GrownText, prompt: list[int]) -> tuple[str | None, str | None, list[CallPiece]]:
        ids, finished = list(text.token_ids), text.finish_reason is not None
        made = parser.parse_delta(text.text, ids, self._asked, prompt_token_ids=prompt, finished=finished)
        if made is None:
            return None, None, []
        return made.reasoning, made.content, [self._call(text.index, call) for call in made.tool_calls or ()]

    def _whole(self, parser: Any, text: GrownText, prompt: list[int]) -> tuple[str | None, str | None, list[CallPiece]]:
        parser.set_prompt_token_ids(prompt)
        reasoning, content, calls = parser.parse(
            text.text, self._asked, enable_auto_tools=True, model_output_token_ids=list(text.token_ids)
        )
        made = [
            CallPiece(number=number, arguments=call.arguments, id=call.id or call_id(), name=call.name)
            for number, call in enumerate(calls or ())
        ]
        return reasoning, content, made

    def _call(self, index: int, call: Any) -> CallPiece:
        """An id and a name for the first piece of a call alone."""
        name = (call.function and call.function.name) or ""
        delta = CallPiece(number=call.index, arguments=(call.function and call.function.arguments) or "")
        if name and (index, call.index) not in self._begun:
            self._begun.add((index, call.index))
            delta.id, delta.name = call.id or call_id(), name
        return delta


def _check(key: str, name: str, known: list[str]) -> None:
    if name and name not in known:
        meant = near_miss(name, known)
        hint = f"did you mean vllm:{meant}?" if meant else f"it has {', '.join(known)}"
        raise HandlerLoadError(f"{key}: vllm:{name} is not a parser of this vLLM; {hint}")
