"""The control topics that the console follows, and what it keeps of them."""
