"""The process that fetches a model, on a machine on which 127.0.0.2 is an address of the Internet."""

from __future__ import annotations

from msx_frontend.archives.hub import process
from msx_net.outgoing import addresses

PUBLIC = "127.0.0.2"

if __name__ == "__main__":
    known = addresses.is_public
    addresses.is_public = lambda address: str(address) == PUBLIC or known(address)
    process.main()
