"""`msx-serve stop`, `status`, `logs`, …: the words beside TorchServe's flags."""
