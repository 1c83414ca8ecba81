"""The package `model_archiver` that build scripts import: thin adapters over this one. It stands last on the path."""
