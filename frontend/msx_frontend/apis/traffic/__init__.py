"""How traffic is divided over versions: by REST and gRPC."""
