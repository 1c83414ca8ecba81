"""Preprocess of the next batch and postprocess of the last one, on threads beside `inference`."""
