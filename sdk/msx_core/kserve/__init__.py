"""KServe v2 between a client's tensors and a handler; `msx_sdk.kserve` says what a handler sees."""
