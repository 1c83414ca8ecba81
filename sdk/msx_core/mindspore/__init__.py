"""MindSpore models: files, weights, ranks and graphs. MindSpore itself is imported by `setup`."""
