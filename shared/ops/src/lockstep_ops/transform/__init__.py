"""Transforms checked and tried before they run (`lockstep transform`). Nothing is written anywhere."""
