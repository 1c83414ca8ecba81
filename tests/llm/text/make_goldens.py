"""Writes goldens.json with Hugging Face transformers, which the tests do not need:

python -m tests.llm.text.make_goldens
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path

from tests.llm.text.chats import CHATS, TEMPLATES, TOKENS
from tests.llm.tokenizers_of_tests import byte_level


def main() -> None:
    fast = importlib.import_module("transformers").PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_object=byte_level(), **TOKENS)
    result: dict[str, dict[str, str]] = {}
    for template, source in TEMPLATES.items():
        result[template] = {}
        for name, (messages, tools, kwargs) in CHATS.items():
            values = {"add_generation_prompt": True, **kwargs}
            try:
                text = tokenizer.apply_chat_template(messages, tools, chat_template=source, tokenize=False, **values)
            except Exception as error:  # jinja2's, of which transformers has a copy of its own
                text = f"! {error}"
            result[template][name] = text
    text = json.dumps(result, indent=1, ensure_ascii=False)
    Path(__file__).with_name("goldens.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
