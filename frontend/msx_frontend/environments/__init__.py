"""Python environments of workers: an interpreter, and the packages that the archive requires."""
