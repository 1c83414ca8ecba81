"""The services over our own HTTP/2: gRPC's protocol without a layer between a call and its job."""
