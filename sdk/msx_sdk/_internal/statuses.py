"""HTTP statuses of failed predictions."""

from __future__ import annotations

OUT_OF_RESOURCES = 507
HEAD_REFUSED = 500
"""Of a reply whose head HTTP does not allow."""
PREDICTION_FAILED = 503
"""TorchServe's status for any exception that a handler did not choose a status for."""
