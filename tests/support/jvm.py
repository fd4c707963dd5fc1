"""A JVM with Kafka's jars that answers Python: MM2's own code as the judge of ours.

The bridge is py4j, which comes with pyspark. The JVM ends with us however we end (it sees its standard input close).
"""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.support import kafka_jars
from tests.support.java import find_java

OPTIONS = ["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
ENDS_WITHIN = 20.0


@contextmanager
def jvm() -> Iterator[Any]:
    """Yield py4j's gateway to a JVM of its own: `gateway.jvm.java.util.HashMap()`. Python's dict and list are
    converted."""
    port, token, process = launch_gateway(
        jarpath=_py4j_jar(),
        classpath=kafka_jars.classpath(),
        javaopts=OPTIONS,
        die_on_exit=True,
        java_path=str(find_java()),
        enable_auth=True,
        return_proc=True,
    )
    try:
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        try:
            yield gateway
        finally:
            gateway.shutdown()
    finally:
        _end(process)


def call(gateway: Any, target: Any, method: str, types: Sequence[str] = (), arguments: Sequence[Any] = ()) -> Any:
    """Call what Java keeps to its package. `target` is an object, or the full name of a class for a static method;
    `types` are the full names of the parameters' classes, or `long`, `int` and `boolean`."""
    reflected = gateway.jvm.java.lang.Class
    owner = reflected.forName(target) if isinstance(target, str) else target.getClass()
    java = gateway.jvm.java.lang
    primitive = {"long": java.Long.TYPE, "int": java.Integer.TYPE, "boolean": java.Boolean.TYPE}
    parameters = gateway.new_array(reflected, len(types))
    values = gateway.new_array(gateway.jvm.java.lang.Object, len(types))
    for index, (kind, argument) in enumerate(zip(types, arguments, strict=True)):
        parameters[index] = primitive.get(kind) or reflected.forName(kind)
        values[index] = argument
    reflected_method = owner.getDeclaredMethod(method, parameters)
    reflected_method.setAccessible(True)
    return reflected_method.invoke(None if isinstance(target, str) else target, values)


def _py4j_jar() -> str:
    [jar] = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
    return str(jar)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
