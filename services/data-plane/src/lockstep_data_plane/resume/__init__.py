"""The resume of a partition: both logs compared with the row, gaps, a first start, transactions."""
