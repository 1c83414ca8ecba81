"""The models that are served: registration, versions, workers and their status."""
