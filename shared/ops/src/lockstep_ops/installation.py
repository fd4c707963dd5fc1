"""The packages that are installed for the Python that runs `lockstep`: services and PySpark.

None of them is imported.
"""

import importlib.util
from collections.abc import Iterable

from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.services import module_name


def spark_version() -> str:
    """Return the version of PySpark, or "" if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pyspark")
    except PackageNotFoundError:
        return ""


def require_services(path: object, names: Iterable[str]) -> None:
    """Check that the packages of these services are installed.

    Args:
        path: The configuration, for the message.
        names: The services.

    Raises:
        CannotUse: Some are missing. The message names them.
    """
    missing = [name for name in names if importlib.util.find_spec(module_name(name)) is None]
    if missing:
        raise CannotUse(
            f"{path} needs {', '.join(missing)}, which this Python does not have: "
            "install lockstep-kafka[all] from the requirements file of a release"
        )
