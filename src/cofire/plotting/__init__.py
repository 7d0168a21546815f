"""Pictures of what was measured and of what a memory has learned. Needs the extra `plot`."""
