"""The jar with the JVM's side of transforms, which the build puts beside this module."""

from pathlib import Path

JAR = Path(__file__).with_name("lockstep-transform.jar")
"""The jar's file. Spark gets it by `spark.jars`, so that driver and executors have it."""

PLUGIN = "lockstep.transform.TransformPlugin"
"""The plugin's class, for `spark.plugins`. An executor that has it listens for the slots."""
