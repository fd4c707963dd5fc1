"""Every kind of finding, and where to look one up."""
