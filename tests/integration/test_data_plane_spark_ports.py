"""Spark's own ports: whoever does not know the secret gets no object read, on the driver and on its block manager."""

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from lockstep_config.keys.spark_settings import SparkSettings
from lockstep_data_plane.spark.conf import Pod, settings_for
from tests.support.java import find_java
from tests.support.ports import free_port

WITHIN_S = 60.0
RPC_REQUEST, RPC_RESPONSE, RPC_FAILURE = 3, 4, 5
"""Types of messages in Spark's `TransportFrame`s."""
HEADER_BYTES = 13
"""Of an answer: its type, the request's number, and how long the body is."""
OBJECT = bytes.fromhex("aced0005") + b"t" + struct.pack(">H", 8) + b"a string"
"""A java.lang.String as Java writes objects: harmless, and read by the same code as one that is not."""
VERIFIER = b"endpoint-verifier"
"""The endpoint that each RpcEnv has."""

DRIVER = """
import json, sys
from pyspark import SparkConf, SparkContext
conf = SparkConf(loadDefaults=False)
for key, value in json.loads(sys.argv[1]).items():
    conf.set(key, value)
context = SparkContext(conf=conf)
ports = [context.getConf().get(f"spark.{name}.port") for name in ("driver", "driver.blockManager")]
print(json.dumps([int(port) for port in ports]), flush=True)
assert context.parallelize(range(8), 2).map(lambda number: number + 1).sum() == 36
print("worked", flush=True)
sys.stdin.read()
context.stop()
"""


class Driver:
    """A driver in a process of its own, as the data plane starts it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        java = str(find_java().resolve().parents[1])
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", DRIVER),
                json.dumps({**settings, "spark.driver.blockManager.port": str(free_port())}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                "JAVA_HOME": java,
                "PATH": "/usr/bin:/bin",
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": sys.executable,
            },
        )
        assert self._process.stdout is not None
        self.ports: list[int] = json.loads(self._process.stdout.readline())
        self.worked = self._process.stdout.readline().strip() == "worked"

    def end(self) -> None:
        self._process.communicate(timeout=WITHIN_S)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Driver]:
    driver = Driver(settings_for(SparkSettings(), 1, Pod()))
    yield driver
    driver.end()


@pytest.fixture(scope="module")
def open_to_all() -> Iterator[Driver]:
    """The same with Spark's own default."""
    driver = Driver({**settings_for(SparkSettings(), 1, Pod()), "spark.authenticate": "false"})
    yield driver
    driver.end()


def rpc_body(port: int) -> bytes:
    """An object for the driver's RpcEnv: no sender, the receiver's address and name, and the object."""
    host = b"127.0.0.1"
    address = b"\x01" + struct.pack(">H", len(host)) + host + struct.pack(">I", port)
    return b"\x00" + address + struct.pack(">H", len(VERIFIER)) + VERIFIER + OBJECT


def answer_of(port: int, body: bytes) -> bytes:
    """What a stranger gets for a request: the answer's frame, or nothing where the connection is closed."""
    message = bytes([RPC_REQUEST]) + struct.pack(">qI", 7, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S) as wire:
        wire.sendall(struct.pack(">q", 8 + len(message)) + message)
        head = wire.recv(8, socket.MSG_WAITALL)
        if len(head) < 8:
            return b""
        answer = wire.recv(HEADER_BYTES, socket.MSG_WAITALL)
        if answer[:1] not in (bytes([RPC_RESPONSE]), bytes([RPC_FAILURE])):
            return answer
        return answer + wire.recv(struct.unpack(">i", answer[9:13])[0], socket.MSG_WAITALL)


def test_object_of_a_stranger_is_not_read_by_the_driver(guarded: Driver, open_to_all: Driver) -> None:
    assert guarded.worked, "slots know the secret"
    driver, _ = open_to_all.ports
    assert b"a string" in answer_of(driver, rpc_body(driver)), "without the secret the object comes to the endpoint"
    driver, _ = guarded.ports
    refused = answer_of(driver, rpc_body(driver))
    assert b"a string" not in refused
    assert refused[:1] in (b"", bytes([RPC_FAILURE]))


def test_block_manager_answers_no_stranger(guarded: Driver, open_to_all: Driver) -> None:
    _, blocks = open_to_all.ports
    assert b"Unknown message type" in answer_of(blocks, b"\x7f" + OBJECT), "it looks at the message"
    _, blocks = guarded.ports
    refused = answer_of(blocks, b"\x7f" + OBJECT)
    assert b"Unknown message type" not in refused
    assert refused[:1] in (b"", bytes([RPC_FAILURE]))
