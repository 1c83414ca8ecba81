"""Reports of the figures: tables, plots, and the sections of docs/benchmarks/*.md."""
