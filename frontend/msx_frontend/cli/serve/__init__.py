"""`msx-serve PATH`: a model, a handler or a folder is served as it lies there, without packing."""
