"""Builds the data plane's one compiled module into the wheel, or beside its source for an editable installation.

It is optional (decision 0066): without a C compiler or Python's headers the wheel is the same for every platform, and
has none.
"""

import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

MODULE = "lockstep_data_plane.record_batch.compiled_records"
SOURCE = Path("src", *MODULE.split(".")).with_suffix(".c")


class CompiledRecordsHook(BuildHookInterface[Any]):
    """Compiles for Python 3.11 and every newer one (the limited API)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Hatchling calls it before it gathers the files of a wheel."""
        folder = Path(self.root, SOURCE).parent
        for earlier in folder.glob(f"{SOURCE.stem}*.so"):
            earlier.unlink()
        extension = Extension(MODULE, [str(Path(self.root, SOURCE))], py_limited_api=True, optional=True)
        build = build_ext(Distribution({"name": "lockstep-kafka-data-plane", "ext_modules": [extension]}))
        with tempfile.TemporaryDirectory() as objects:
            build.build_temp, build.build_lib = objects, str(Path(self.root, "src"))
            build.ensure_finalized()
            build.run()
        built = [file.relative_to(self.root).as_posix() for file in folder.glob(f"{SOURCE.stem}*.so")]
        if built:
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["artifacts"] += built
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{platform}"
