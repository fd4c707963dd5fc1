"""Where a partition goes on: both logs held against the row, gaps, a first start, transactions."""
