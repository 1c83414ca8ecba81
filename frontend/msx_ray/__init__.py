"""Worker groups on other machines: Ray places them, an agent on each node runs their ranks."""
