"""Values between the stages of a model in shared memory: the worker's part, as owner and as reader."""
