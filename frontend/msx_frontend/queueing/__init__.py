"""From a request to a worker, and its answer back: jobs, queues, batches."""
