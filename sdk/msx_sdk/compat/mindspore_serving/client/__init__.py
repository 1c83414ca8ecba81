"""The client of servables over gRPC."""
