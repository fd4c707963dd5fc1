"""Every property: type, default, meaning, where it is allowed, and what becomes of it."""
