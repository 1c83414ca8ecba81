"""Other model servers, each in a virtual environment of its own."""
