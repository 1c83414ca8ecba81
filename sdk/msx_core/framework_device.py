"""A worker's devices as its framework calls them."""

import msgspec


class FrameworkDevice(msgspec.Struct, frozen=True):
    """`target` is MindSpore's name of the kind of device; it can be taken only where `library` loads."""

    target: str
    library: str
