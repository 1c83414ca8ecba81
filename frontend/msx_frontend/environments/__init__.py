"""What the workers of a version run on: an interpreter, and the packages that its archive requires."""
