"""Types of the Open Inference Protocol that server and worker share; without NumPy."""

import msgspec

INFER = "infer"
"""The operation of a request whose field `body` is an inference request of the protocol."""

HEADER_LENGTH = "inference-header-content-length"
"""The request header that says how many bytes of the body are JSON; tensors follow them. 0: the body is one tensor."""

GRPC_CONTENTS = "grpc_contents"
"""Marks an input that the server made of a gRPC request: its bytes are a serialized `InferTensorContents`."""

ITEM_SIZES = {
    "BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
    "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8,
}  # fmt: skip
"""Bytes of one value. BYTES values have different sizes: each is preceded by its length (u32, little-endian)."""

BYTES = "BYTES"
DATATYPES = (*ITEM_SIZES, BYTES)


class TensorMeta(msgspec.Struct, frozen=True):
    """One tensor of a model. `shape` has -1 for a size that may vary."""

    name: str
    datatype: str
    shape: tuple[int, ...]


class Signature(msgspec.Struct, frozen=True, omit_defaults=True):
    """The inputs and outputs of a model, as clients see them; a model without inputs here accepts any tensors."""

    inputs: tuple[TensorMeta, ...] = ()
    outputs: tuple[TensorMeta, ...] = ()
    platform: str = ""
    """The protocol's name for the runtime of the model, such as `mindspore_mindir`."""
    enforced: bool = True
    """True: requests with other inputs are refused before the handler sees them. False: the handler takes more than the
    signature says, and checks its requests itself."""
