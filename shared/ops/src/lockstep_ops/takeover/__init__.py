"""The takeover of an MM2's offsets, and their way back."""
