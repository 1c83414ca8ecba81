"""`GET /cluster`: where workers run, when they run on other machines."""
