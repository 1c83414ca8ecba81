"""The conformance suite: TorchServe's behaviour as its clients see it, one module a section of its reference.

Each case names its section in the first line of its docstring (`§3`), or its module does for all.
"""
