"""Transforms: a SELECT over records, compiled by the driver and evaluated in the executor's JVM (`java/`)."""
