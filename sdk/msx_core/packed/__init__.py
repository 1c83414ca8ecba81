"""Values between processes of one model: MessagePack, with arrays and texts as they are.

An array is the extension type 1: the length of its type's name (1 byte), the name as NumPy has it, the number of its
dimensions (1 byte), each size (8 bytes), then its numbers in C order. All of it is little-endian. The server reads and
writes such values without NumPy, as `Tensor`; workers as arrays. `references` has the extension type 2. A text or bytes
that are an array of one element (MindSpore Serving's clients send such) are the extension types 3 and 4.
"""

from msx_core.packed.reading import (
    Resolve,
    as_array,
    extensions,
    sent_extension,
    unpack,
    unpack_sent,
    unpack_tensors,
)
from msx_core.packed.sharing import pack_shared
from msx_core.packed.tensor import (
    MOST_DIMENSIONS,
    PACKED,
    SIZES,
    TENSOR,
    InvalidPacked,
    OneBytes,
    OneText,
    Tensor,
)
from msx_core.packed.writing import extension, pack

__all__ = [
    "MOST_DIMENSIONS",
    "PACKED",
    "SIZES",
    "TENSOR",
    "InvalidPacked",
    "OneBytes",
    "OneText",
    "Resolve",
    "Tensor",
    "as_array",
    "extension",
    "extensions",
    "pack",
    "pack_shared",
    "sent_extension",
    "unpack",
    "unpack_sent",
    "unpack_tensors",
]
