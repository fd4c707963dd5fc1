"""A file judged by itself: what it refers to need not be there, and its own mistakes are told all the same."""

from pathlib import Path

import pytest

from lockstep_config import ConfigurationError
from lockstep_config.loader.configuration import build_configuration
from lockstep_config.text.properties import read_properties

FILE = Path("mm2.properties")
SOUND = """\
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
config.providers = env, file
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
"""


def mistakes(lines: str, *, alone: bool, text: str = SOUND) -> list[str]:
    try:
        build_configuration(read_properties((text + lines).encode(), FILE), FILE, {}, alone=alone)
    except ConfigurationError as exc:
        return [problem.key for problem in exc.problems]
    return []


ELSEWHERE = {
    "an environment variable": "A->B.topics = ${env:NOT_SET}\n",
    "a part of a value": "A->B.topics = a,${env:NOT_SET}\n",
    "a number": "tasks.max = ${file:/not/there:n}\n",
    "a trust store": "A.security.protocol = SSL\nA.ssl.truststore.type = PEM\nA.ssl.truststore.location = /not/there\n",
    "a key store": "A.security.protocol = SSL\nA.ssl.keystore.location = /not/there\nA.ssl.keystore.password = x\n",
    "a class": "lockstep.topic.filter.class = not_there:Filter\n",
    "a class in the place of a Java class": (
        "lockstep.replication.policy.class = not_there:Policy\nreplication.policy.class = com.example.Policy\n"
    ),
    "a password": (
        "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\n"
        'A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="u" '
        'password="${env:NOT_SET}";\n'
    ),
}


@pytest.mark.parametrize("lines", ELSEWHERE.values(), ids=ELSEWHERE)
def test_standalone_check_skips_external_references(lines: str) -> None:
    assert mistakes(lines, alone=False)
    assert mistakes(lines, alone=True) == []


@pytest.mark.parametrize("key", ["A.bootstrap.servers", "B.bootstrap.servers"])
def test_standalone_check_accepts_required_keys_with_references(key: str) -> None:
    text = "".join(
        f"{key} = ${{env:X}}\n" if line.startswith(key) else line for line in SOUND.splitlines(keepends=True)
    )
    assert mistakes("", alone=True, text=text) == []


def test_standalone_check_accepts_clusters_by_reference() -> None:
    text = SOUND.replace("clusters = A, B", "clusters = ${env:CLUSTERS}")
    assert mistakes("", alone=False, text=text) == ["clusters"]
    assert mistakes("", alone=True, text=text) == []
    assert mistakes("", alone=True, text=SOUND.replace("clusters = A, B\n", "")) == ["clusters"]


@pytest.mark.parametrize("lines", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ("A->B.groups = *\n", "A->B.groups"),
        ("offset.lag.max = many\n", "offset.lag.max"),
        ("transforms = mask\n", "transforms"),
        ("A->B.topic = ${env:X\n", "A->B.topic"),
    ],
)
def test_standalone_check_reports_own_mistakes(lines: str, wrong: str, key: str) -> None:
    assert mistakes(lines + wrong, alone=True) == [key]
