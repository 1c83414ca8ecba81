"""Worker groups: launchers, ranks, batches, supervision."""
