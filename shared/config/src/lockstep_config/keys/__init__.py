"""Every property: type, default, meaning, where it may stand, what becomes of it."""
