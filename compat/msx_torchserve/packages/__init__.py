"""The package `model_archiver` that build scripts import: thin adapters over msx_archiver. It is last on Python's
path."""
