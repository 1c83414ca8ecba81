"""Aliases of models: further names by which requests ask for them."""
