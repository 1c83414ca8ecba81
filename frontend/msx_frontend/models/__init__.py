"""The models being served: registration, versions, workers, and what is said of them."""
