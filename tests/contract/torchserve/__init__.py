"""The conformance suite: TorchServe's behaviour as its clients see it, one module for each topic.

Each module, or a case of it, names its section of docs/torchserve-contract.md: `contract#tokens`.
"""
