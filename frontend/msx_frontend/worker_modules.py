"""Modules that run in a worker's interpreter, by name: the server imports none of them.

Python of another environment may run them (the key `python`), and MindSpore is imported there only.
"""

WORKER = "msx_backend.worker"
"""One rank of a model: `python -m`; imported alone, it shows that an interpreter can run workers."""
PROTOCOL = "msx_protocol"
"""Frames of that worker, with the number of their version."""
RUN_MODULE = "msx_backend.run_module"
"""Run another module, and exit with the server."""
SIZING = "msx_llm.sizing"
"""Estimate the memory and speed of a language model, for `msx-serve plan`."""
