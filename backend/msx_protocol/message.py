"""The base class of all messages."""

import msgspec


class WireMessage(msgspec.Struct, array_like=True):
    """The head of a frame: a MessagePack array whose first entry is the tag of the message's class."""
