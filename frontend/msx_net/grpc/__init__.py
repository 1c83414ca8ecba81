"""The gRPC services. Nothing outside this package imports grpc."""

import os

# Read when grpc is imported, which happens in this package only. The server never forks without exec.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
