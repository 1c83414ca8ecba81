"""Worker groups: processes, channels, supervision."""
