"""One version of a model and its parts: queue, workers, status, schema, figures."""
