"""`ts.metrics.dimension`."""


class Dimension:
    """A label of a metric."""

    def __init__(self, name: str, value: str) -> None:
        self.name, self.value = name, value

    def __str__(self) -> str:
        return f"{self.name}:{self.value}"

    def to_dict(self) -> dict[str, str]:
        return {"Name": self.name, "Value": self.value}
