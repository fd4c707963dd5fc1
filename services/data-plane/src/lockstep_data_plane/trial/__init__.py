"""Transforms tried out in a JVM of their own, for `lockstep transform`. No cluster is asked, and nothing is written."""
