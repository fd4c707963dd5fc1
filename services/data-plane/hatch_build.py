"""Builds what is compiled into the wheel: one module in C, and the transforms' jar.

The module is optional (decision 0066): without a C compiler or Python's headers the wheel is the same for every
platform, and has none. For an editable installation it is built beside its source, and the set-up compiles the jar
afterwards, when there is a Spark (`transform_jar.py`).
"""

import importlib.util
import os
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

WITHOUT_TRANSFORMS = "LOCKSTEP_WITHOUT_TRANSFORMS"
"""The variable that asks for a wheel without the jar, for a place that has neither Spark nor Java."""

MODULE = "lockstep_data_plane.record_batch.compiled_records"
SOURCE = Path("src", *MODULE.split(".")).with_suffix(".c")


class CompiledRecordsHook(BuildHookInterface[Any]):
    """Compiles for Python 3.11 and every newer one (the limited API)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Hatchling calls it before it gathers the files of a wheel."""
        self._compile_module(build_data)
        if version != "editable" and not os.environ.get(WITHOUT_TRANSFORMS):
            jar: Path = _transform_jar(self.root).build(Path(self.root))
            build_data["artifacts"].append(jar.relative_to(self.root).as_posix())

    def _compile_module(self, build_data: dict[str, Any]) -> None:
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


def _transform_jar(root: str) -> Any:
    """Return the module `transform_jar.py`, which lies beside this one in no package."""
    spec = importlib.util.spec_from_file_location("transform_jar", Path(root, "transform_jar.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
