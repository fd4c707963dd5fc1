"""Comparisons of a partition with its copy, batch by batch, and by record where batches differ."""
