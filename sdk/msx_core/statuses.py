"""HTTP statuses of failed predictions."""

OUT_OF_RESOURCES = 507
HEAD_REFUSED = 500
"""Status of a reply whose head HTTP does not allow."""
UNKNOWN_METHOD = 404
PREDICTION_FAILED = 503
"""TorchServe's status for an exception without a status of its own."""
