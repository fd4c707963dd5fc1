"""Take over the offsets of a MirrorMaker, and hand them back."""
