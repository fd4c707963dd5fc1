"""A record batch as bytes: scan, judge, stamp, rebuild (design §5, "Batch facts"). No I/O, no clock."""
