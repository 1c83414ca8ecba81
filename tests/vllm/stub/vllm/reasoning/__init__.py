class ReasoningParserManager:
    @classmethod
    def list_registered(cls) -> list[str]:
        return ["deepseek_r1", "qwen3"]
