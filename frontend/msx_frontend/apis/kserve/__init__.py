"""KServe v2, the Open Inference Protocol, with Triton's extensions: what REST and gRPC share, and the REST routes.

Translation only: tensors are decoded and encoded by the worker (`msx_sdk.kserve`). The gRPC service is in `grpc`.
"""
