"""Linear layers whose weights are integers in the files: what each method writes, and how it is read."""
