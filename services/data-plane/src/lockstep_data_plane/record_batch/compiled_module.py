"""The compiled code of this package.

It is optional (`docs/decisions/0066-records-are-copied-by-compiled-code.md`).
"""

from functools import cache
from types import ModuleType


@cache
def find_compiled() -> ModuleType | None:
    """Return the compiled module; None: Lockstep was built without a C compiler."""
    try:
        from lockstep_data_plane.record_batch import compiled_records
    except ImportError:
        return None
    return compiled_records
