class ToolParserManager:
    @classmethod
    def list_registered(cls) -> list[str]:
        return ["hermes", "unfit", "broken"]
