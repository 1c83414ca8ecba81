"""Types of tensors, by their numbers in the file."""

from dataclasses import dataclass

from msx_core.gguf.errors import GgufError


@dataclass(frozen=True)
class Kind:
    """`values` of a row are a block of `size` bytes."""

    name: str
    values: int
    size: int

    @property
    def quantised(self) -> bool:
        return self.values > 1


KINDS = {
    0: Kind("F32", 1, 4),
    1: Kind("F16", 1, 2),
    2: Kind("Q4_0", 32, 18),
    3: Kind("Q4_1", 32, 20),
    6: Kind("Q5_0", 32, 22),
    7: Kind("Q5_1", 32, 24),
    8: Kind("Q8_0", 32, 34),
    12: Kind("Q4_K", 256, 144),
    13: Kind("Q5_K", 256, 176),
    14: Kind("Q6_K", 256, 210),
    30: Kind("BF16", 1, 2),
}
BY_NAME = {kind.name: kind for kind in KINDS.values()}
OTHERS = {
    9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}  # fmt: skip


def kind_of(number: int, tensor: str) -> Kind:
    """Raises GgufError for a type that is not read."""
    if (kind := KINDS.get(number)) is not None:
        return kind
    raise GgufError(
        f"tensor {tensor} has the type {OTHERS.get(number, number)}, which is not read; {', '.join(BY_NAME)} are: "
        "take the file of another quantisation, such as Q8_0 or Q4_K_M, or make one by llama-quantize"
    )
