"""Benchmarks beside the peers: `python -m bench` measures in fresh processes and writes BENCHMARKS.md."""
