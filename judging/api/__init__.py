"""Routes that bring files in, and those of pools and batches."""
