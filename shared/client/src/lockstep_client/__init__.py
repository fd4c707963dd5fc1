"""MirrorMaker 2's client side in Python: translate offsets, hops, upstream clusters."""
