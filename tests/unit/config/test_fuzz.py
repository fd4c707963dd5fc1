"""Spoilt files: each loads or is refused with a sentence that names the place; never a traceback, never a
hang, and no secret in what is said. `SEED=n` begins elsewhere."""

import os
import random
import re
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockstep_config import ConfigurationError, load
from lockstep_config.keys.client_keys import CLIENT, CONNECTION
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.loader.mm1_files import LegacyFiles, load_legacy
from lockstep_config.text.properties import read_properties
from lockstep_config.text.secrets import is_secret

from .conftest import TWO_CLUSTERS
from .mutations import Kind, Seed, mutated

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
ENVIRONMENT = {"EU_PASSWORD": "hunter2-from-outside", "SEED": "1", "LOCKSTEP_SECRETS_DIR": "/nowhere"}
SECRET = "hunter2-written-out"
LIMIT_S = 10.0
"""Of processor time for one file; usually it takes a hundredth of a second. A name of 200,000 letters takes one or two,
and what other threads of the tests use counts as well."""

SEED = int(os.environ.get("SEED") or 6)
WORDS = (
    *KEYS,
    *CONNECTION,
    *(f"{kind}.{name}" for kind, keys in CLIENT.items() for name in keys),
    *("source.consumer", "target.cluster", "producer.override", "clusters", "A->B", "x"),
)


def everything_stated() -> bytes:
    """A file in which each key stands that may stand for a flow and has a default, and secrets."""
    lines = ["clusters = A, B", "A.bootstrap.servers = a:1", "B.bootstrap.servers = b:1", "A->B.enabled = true"]
    for name, key in KEYS.items():
        default = key.default or ""
        if name != "enabled" and default and default not in KEYS:
            lines.append(f"A->B.{name} = {default}".replace("\\", "\\\\"))
    lines += [f"A.ssl.key.password = {SECRET}", f'B.sasl.jaas.config = x required password="{SECRET}";']
    return "\n".join(lines).encode()


def blocks_of(document: Path) -> Iterator[bytes]:
    """What a page shows as a file of properties; where it is a part of one, with what it leaves out."""
    for block in re.findall(r"```properties\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL):
        yield (block if "clusters =" in block else TWO_CLUSTERS + block).encode()


def properties_seeds() -> tuple[Seed, ...]:
    files = [path.read_bytes() for path in sorted((HERE / "files").glob("*.properties"))]
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    files += [block for page in pages for block in blocks_of(page)]
    return tuple({"mm2.properties": data} for data in (*files, everything_stated()))


PROPERTIES = Kind(
    "mm2.properties", properties_seeds(), lambda folder: load(folder / "mm2.properties", ENVIRONMENT), WORDS
)

RESOURCE = b"""\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: mirror
spec:
  replicas: 1
  connectCluster: "b"
  clusters:
    - alias: "a"
      bootstrapServers: a:9092
      authentication: {type: scram-sha-512, username: me, passwordSecret: {secretName: s, password: p}}
      tls: {trustedCertificates: [{secretName: ca, certificate: ca.crt}]}
    - alias: "b"
      bootstrapServers: b:9092
      config: {config.storage.replication.factor: 1}
  mirrors:
    - sourceCluster: "a"
      targetCluster: "b"
      topicsPattern: "orders.*"
      sourceConnector:
        tasksMax: 2
        config: {replication.factor: -1, sync.topic.acls.enabled: "false"}
      checkpointConnector:
        config: {sync.group.offsets.enabled: true}
"""


def resource_seeds() -> tuple[Seed, ...]:
    documents = [path.read_bytes() for path in sorted((ROOT / "tests" / "seeds").glob("*.yaml"))]
    return tuple({"mirror.yaml": data} for data in (RESOURCE, *documents))


RESOURCES = Kind(
    "Strimzi's resources",
    resource_seeds(),
    lambda folder: load(folder / "mirror.yaml", ENVIRONMENT),
    (*WORDS, "spec", "clusters", "mirrors", "sourceConnector", "config", "alias", "tls", "state", "pause", "kind"),
)

CONSUMER = f"""\
bootstrap.servers = a:9092
group.id = mm1
auto.offset.reset = earliest
ssl.key.password = {SECRET}
fetch.min.bytes = 10
""".encode()
PRODUCER = b"bootstrap.servers = b:9092\ncompression.type = zstd\nacks = all\ntopics = orders.*\n"
LEGACY = Kind(
    "MirrorMaker 1's files",
    ({"consumer.properties": CONSUMER, "producer.properties": PRODUCER},),
    lambda folder: load_legacy(
        LegacyFiles(folder / "consumer.properties", folder / "producer.properties"), ENVIRONMENT
    ),
    WORDS,
)
KINDS = (PROPERTIES, RESOURCES, LEGACY)


class Hangs(BaseException):
    """It took too long. No Exception, so that nothing on its way takes it for one."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def complaint(kind: Kind, folder: Path, files: dict[str, bytes]) -> str | None:
    """What is wrong with how the files were taken."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    try:
        with within(LIMIT_S):
            kind.load(folder)
    except ConfigurationError as exc:
        for problem in exc.problems:
            if not problem.message or not str(problem).startswith(str(folder)):
                return f"names no place: {problem}"
        printed = str(exc)
    except Hangs:
        return f"no end within {LIMIT_S} s"
    except Exception:  # noqa: BLE001  # that none gets out is what is tested
        return traceback.format_exc(limit=-6)
    else:
        return None
    if ENVIRONMENT["EU_PASSWORD"] in printed:
        return "tells a secret of a config provider"
    entries = [entry for data in files.values() for entry in read_properties(data, folder).entries]
    if any(SECRET in entry.key for entry in entries):
        return None  # a key is named, whatever it is called
    secrets = (entry.value for entry in entries if is_secret(entry.key))
    return next((f"tells the secret {secret!r}" for secret in secrets if SECRET in secret and SECRET in printed), None)


def fuzz(kind: Kind, folder: Path, count: int) -> None:
    wrong: dict[str, tuple[int, bytes]] = {}
    for number in range(count):
        dice = random.Random(f"{SEED}-{kind.name}-{number}")
        files = mutated(dice.choice(kind.seeds), kind.words, dice)
        fault = complaint(kind, folder, files)
        if fault is not None:
            wrong.setdefault(fault[-300:], (number, next(iter(files.values()))))
    report = "\n".join(f"number {number}: {fault}\n{data[:400]!r}" for fault, (number, data) in wrong.items())
    assert not wrong, f"SEED={SEED}\n{report}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_three_hundred_spoilt_files(kind: Kind, tmp_path: Path) -> None:
    fuzz(kind, tmp_path, 300 // len(KINDS))


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_six_thousand_spoilt_files(kind: Kind, tmp_path: Path) -> None:
    fuzz(kind, tmp_path, 6_000 // len(KINDS))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_seeds_are_what_they_seem(kind: Kind, tmp_path: Path) -> None:
    """Most of them load; a seed that is refused at once tests little."""
    refused = 0
    for seed in kind.seeds:
        for name, data in seed.items():
            (tmp_path / name).write_bytes(data)
        try:
            kind.load(tmp_path)
        except ConfigurationError:
            refused += 1
    if kind is not RESOURCES:  # whose secrets are nowhere
        assert refused <= len(kind.seeds) // 2
