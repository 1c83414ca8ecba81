"""The services by grpc.aio, gRPC's own server (`grpc_transport=grpcio`)."""
