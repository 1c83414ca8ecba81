"""`ts.metrics.metric_collector`, which TorchServe's documentation names for `system_metrics_cmd`: a script."""

import argparse
import logging
import sys

# By this name, because a script is in no package.
from msx_torchserve.packages.ts.metrics import system_metrics
from msx_torchserve.packages.ts.metrics.process_memory_metric import check_process_mem_usage


def main() -> None:
    """Print the machine's figures, and the memory of the processes whose pids are on standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int, help="number of GPUs")
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
    system_metrics.collect_all(system_metrics, parser.parse_args().gpu)
    check_process_mem_usage(sys.stdin)


if __name__ == "__main__":
    main()
