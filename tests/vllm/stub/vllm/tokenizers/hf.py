from typing import Any


class HfTokenizer:
    """A token a character: its code, below 128. 0 begins a prompt, and 1 ends a text."""

    is_fast = True
    eos_token_id = 1
    chat_template: str | None = "{% for m in messages %}{{ m.content }}{% endfor %}{{ flag }}"
    all_special_ids = (0, 1)
    special_tokens_map = {"bos_token": "<s>", "additional_special_tokens": ["</s>"]}

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return "".join({0: "<s>", 1: "</s>"}.get(id, chr(id)) for id in ids if id > 1 or not skip_special_tokens)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [0] * add_special_tokens + [ord(one) for one in text]

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [self.decode([id]) for id in ids]

    def __call__(
        self, text: str, pair: str | None = None, add_special_tokens: bool = True, **options: object
    ) -> dict[str, list[Any]]:
        if pair is not None:
            ids = self.encode(text + pair)
            return {"input_ids": ids, "token_type_ids": [0] * (len(ids) - len(pair)) + [1] * len(pair)}
        places: list[Any] = [(0, 0)] * add_special_tokens + [(at, at + 1) for at in range(len(text))]
        return {"input_ids": list(self.encode(text, add_special_tokens)), "offset_mapping": places}
