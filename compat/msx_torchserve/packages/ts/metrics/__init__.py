"""`ts.metrics`: over `msx_sdk.metrics`."""
