"""The way from text to tokens, from conversations to prompts, and from tokens to a stream of text."""

from msx_core.chat_templates.chat import ChatTemplate
from msx_llm.text.stream import TextPiece, TextStream
from msx_llm.text.tokenizer import Tokenizer

__all__ = ["ChatTemplate", "TextPiece", "TextStream", "Tokenizer"]
