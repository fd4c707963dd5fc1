"""A file's checked lines as the typed, frozen settings of each flow."""
