"""KServe v2, the Open Inference Protocol, between a client's tensors and a handler.

What a handler sees of `/v2/models/{m}/infer` and of gRPC's `ModelInfer` is the same: `data[i]["body"]` is the request's
JSON object, in which the `data` of a tensor that came as bytes is a NumPy array in the tensor's shape (BYTES: an object
array of `bytes`; BF16: float32). It answers with

- the protocol's reply, `{"outputs": [{"name", "shape", "datatype", "data"}, …]}`, whose `data` may be lists or arrays,
- a dict of output names to arrays, tensors, lists or numbers,
- one array, list, number, text or bytes: the model's only output.

The worker makes JSON or bytes of it, as the client asked for each output. `tensor_signature()` of a handler says what
the model takes and gives; without it any tensors are accepted.
"""

from msx_core.kserve.types import Signature, TensorMeta

__all__ = ["Signature", "TensorMeta"]
