"""The services by grpc.aio, gRPC's own server (`direct_predictions=false`)."""
