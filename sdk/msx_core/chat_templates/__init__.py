"""Chat templates: the variables that they are given, the sandbox, and processes for those that requests bring."""
