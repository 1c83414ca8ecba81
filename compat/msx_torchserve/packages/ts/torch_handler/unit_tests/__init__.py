"""`ts.torch_handler.unit_tests`: helpers of unit tests of handlers."""
