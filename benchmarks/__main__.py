"""`python -m benchmarks`: see `benchmarks.recall`."""

from benchmarks.recall import main

main()
