"""From text to tokens, from conversations to prompts, and from tokens to a stream of text."""

from msx_backend.llm.text.chat import ChatTemplate
from msx_backend.llm.text.stream import TextPiece, TextStream
from msx_backend.llm.text.tokenizer import Tokenizer

__all__ = ["ChatTemplate", "TextPiece", "TextStream", "Tokenizer"]
