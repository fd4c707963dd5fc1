"""Every property: type, default, meaning, where it is allowed, what becomes of it."""
