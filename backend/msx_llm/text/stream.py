"""The text of tokens as they are generated."""

import codecs

import msgspec

from msx_llm.text.stop import StopFinder
from msx_llm.text.tokenizer import Tokenizer

_decoder = codecs.getincrementaldecoder("utf-8")


class TextPiece(msgspec.Struct, frozen=True):
    """`stop` is the stop string that ended the text."""

    text: str = ""
    stop: str | None = None


class TextStream:
    """Yields one text in whole characters, and holds back what may turn out to be a stop string.

    Holds at most three bytes and one character less than the longest stop string, so that a token costs the same
    however long the text is. The text is what follows a prompt: with a SentencePiece tokenizer, where `decode` takes
    the space off the first word, it begins with that space. Stop strings do not count in, nor begin in, the first
    `min_tokens` - 1 tokens.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop: tuple[str, ...] = (),
        keep_stop: bool = False,
        skip_special: bool = True,
        min_tokens: int = 0,
    ) -> None:
        self._tokenizer, self._keep_stop, self._skip_special = tokenizer, keep_stop, skip_special
        self._stops, self._early = StopFinder(stop), min_tokens
        self._looks = bool(self._stops)
        self._characters = _decoder(errors="replace")
        self._held, self._over = "", False
        self._cut = False
        """The last token ended within a character."""

    @property
    def shows_whole(self) -> bool:
        """The next token is shown as it is, if it is not special and has whole characters: nothing is held back before
        it, and no stop string is looked for."""
        return not (self._cut or self._over or self._looks)

    def push(self, token: int) -> TextPiece:
        """Returns the text that can be shown after this token; nothing after a stop string."""
        self._early -= 1
        if self._over:
            return TextPiece()
        if self._skip_special and self._tokenizer.special(token):
            return self._pass(self._tokenizer.token_text(token))
        text = self._characters.decode(self._tokenizer.token_bytes(token))
        self._cut = bool(self._characters.getstate()[0])
        return self._show(text)

    def finish(self) -> str:
        """Returns the text that was held back; U+FFFD for an incomplete character."""
        held = "" if self._over else self._held + self._characters.decode(b"", final=True)
        self._over = True
        return held

    def _pass(self, special: str) -> TextPiece:
        """A special token is not shown, but it may still be a stop string."""
        if self._early > 0 or special not in self._stops:
            return TextPiece()
        return TextPiece(self.finish() + special * self._keep_stop, special)

    def _show(self, text: str) -> TextPiece:
        if self._early > 0 or not self._looks:
            return TextPiece(text)
        found = self._stops.feed(text)
        text = self._held + text
        if found is not None:
            self._over = True
            return TextPiece(text[: found.end if self._keep_stop else found.start], found.stop)
        safe = len(text) - self._stops.held
        self._held = text[safe:]
        return TextPiece(text[:safe])
