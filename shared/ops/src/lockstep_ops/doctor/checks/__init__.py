"""The checks that judge the facts of an examination. Nothing here does I/O."""
