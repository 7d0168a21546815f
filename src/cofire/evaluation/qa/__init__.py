"""Benchmarks end to end: questions asked of a memory, answered and scored."""
