"""Record batches as bytes: scan, judge, stamp, rebuild (`architecture.md` §5, "Batch facts"). No I/O, no clock."""
