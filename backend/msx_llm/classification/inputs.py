"""Converts a request to the token ids of a text, or of a pair of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from msx_core.chat_templates.pair_template import KEY, PairTemplate, read_template
from msx_llm.embedding.inputs import InputTokenizer, check_truncate
from msx_llm.text import Tokenizer
from msx_llm.text.length import check_size, too_long
from msx_llm.text.pieces import PIECE
from msx_llm.text.text_calls import TextCall, TextFiles, TokenizeCall
from msx_sdk.errors import HandlerLoadError, InvalidInput
from msx_sdk.generation import ClassifyRequest, ContextLengthExceeded, EmbedRequest, TokenizeRequest


@dataclass(frozen=True)
class PairTokens:
    """`segments` are 1 in the second text, where the model tells it from the first one."""

    ids: Sequence[int]
    segments: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.ids)


class PairTokenizer:
    """`longest` includes the special tokens; `vocab_size` is the network's. Pairs are made one text by `template`, or
    joined by the tokenizer, with `prompt` before the first."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        longest: int,
        vocab_size: int,
        template: PairTemplate | None = None,
        prompt: str = "",
        pairs_alone: bool = False,
    ) -> None:
        self._tokenizer, self._longest, self._template, self._prompt = tokenizer, longest, template, prompt
        self._texts, self._pairs_alone = InputTokenizer(tokenizer, longest, vocab_size), pairs_alone

    def check_size(self, request: ClassifyRequest) -> None:
        """Raises ContextLengthExceeded for a text that is too long for certain, without tokenizing it. A template may
        leave out some of a pair."""
        if request.pair is None:
            self._texts.check_size(_alone(request))
        elif self._template is None and request.truncate is None:
            check_size("input", f"{request.input}{request.pair}", self._tokenizer, self._longest)

    def tokenized(self, request: TokenizeRequest) -> bytes:
        """A `TokenizeReply`, encoded. Raises InvalidInput."""
        return self._texts.tokenized(request)

    def tokens(self, request: ClassifyRequest) -> PairTokens:
        """Raises InvalidInput, which names the parameter and its limit."""
        if request.pair is None and self._pairs_alone and isinstance(request.input, str):
            raise InvalidInput("pair: needed: this model says how well a second text fits the first")
        if request.pair is None:
            return PairTokens(self._texts.tokens(_alone(request)))
        if not isinstance(request.input, str):
            raise InvalidInput("input: expected a text, since there is a pair; token ids are taken alone")
        check_truncate(request.truncate, self._longest)
        found = self._pair(request.input, request.pair, request.truncate, request.truncate_left)
        if len(found) > self._longest:
            raise ContextLengthExceeded(too_long("input", len(found), self._longest))
        return found

    def _pair(self, first: str, second: str, truncate: int | None, left: bool) -> PairTokens:
        if self._template is None:
            self._check_frame(truncate, self._tokenizer.pair_frame)
            if truncate is None:
                self._check_whole(first)
                self._check_whole(second)
            return PairTokens(*self._tokenizer.pair(self._prompt + first, second, truncate, left))
        if left:
            raise InvalidInput(
                "truncate_left: a template stands around the pairs of this model, which are cut at their end"
            )
        written = self._template.text(first, second)
        if truncate is None:
            self._check_whole(written.text)
        ids, end = self._tokenizer.ending(*written, truncate)
        self._check_frame(truncate, end)
        return PairTokens(ids)

    def _check_whole(self, text: str) -> None:
        """Raises ContextLengthExceeded for a text of several pieces that is too long, without tokenizing all of it."""
        check_size("input", text, self._tokenizer, self._longest)
        if len(text) > PIECE and not self._tokenizer.some(text, self._longest + 1)[1]:
            raise ContextLengthExceeded(too_long("input", None, self._longest))

    def _check_frame(self, truncate: int | None, frame: int) -> None:
        if truncate is not None and truncate < frame + 2:
            raise InvalidInput(f"truncate: expected at least {frame + 2}: {frame} are special tokens")


class PairCall(TextCall[PairTokenizer, PairTokens], tag="pair", array_like=True):
    request: ClassifyRequest
    result = PairTokens

    def answer(self, texts: PairTokenizer) -> PairTokens:
        """The token ids of the text or of the pair."""
        return texts.tokens(self.request)


class PairFiles(TextFiles[PairTokenizer], tag="pairs"):
    """A folder in Hugging Face's layout. `segments`: pairs need no template; `by_words`: the model answers with a
    word."""

    folder: str
    longest: int
    vocab_size: int
    template: str | None
    prompt: str
    segments: bool
    by_words: bool
    calls: ClassVar[Any] = PairCall | TokenizeCall

    def load(self) -> PairTokenizer:
        folder = Path(self.folder)
        found = None if self.segments else read_template(folder, self.template, self.prompt)
        if found is None and self.by_words:
            raise HandlerLoadError(
                f"{KEY}: needed: the model answers with a word, and its chat template has no place for messages of the "
                "roles query and document"
            )
        limits = self.longest, self.vocab_size
        return PairTokenizer(Tokenizer.from_folder(folder), *limits, found, self.prompt, pairs_alone=self.by_words)


def _alone(request: ClassifyRequest) -> EmbedRequest:
    return EmbedRequest(input=request.input, truncate=request.truncate, truncate_left=request.truncate_left)
