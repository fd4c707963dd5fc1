"""Spark's master and settings in a file: those that are accepted, pinned or refused."""

import pytest

from lockstep_config.keys.spark_settings import PINNED
from tests.unit.config.conftest import LoadText, MistakesOf

SECRET = "lockstep.spark.conf.spark.authenticate.secret = x\n"


@pytest.mark.parametrize(
    "master", ["local", "local[4]", "local[*]", "local[4,1]", "spark://a:7077", "spark://a:7077,b:7077"]
)
def test_masters_on_which_slots_run(load_text: LoadText, master: str) -> None:
    (flow, *_) = load_text(f"lockstep.spark.master = {master}\n{SECRET}").flows
    assert flow.data_plane.spark.master == master


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("sc://a:15002", "Spark Connect"),
        ("local[4,2]", "started again by the data plane's driver alone"),
        ("local-cluster[2,1,512]", "it takes local"),
        ("yarn", "never tried"),
        ("mesos://a:5050", "it takes local"),
        ("spark://a", "it takes local"),
        ("", "it takes local"),
    ],
)
def test_spark_master_of_another_kind_is_refused(mistakes_of: MistakesOf, master: str, said: str) -> None:
    (mistake,) = mistakes_of(f"lockstep.spark.master = {master}\n")
    assert mistake.startswith("5 lockstep.spark.master: ")
    assert said in mistake


@pytest.mark.parametrize("secret", ["", "lockstep.spark.conf.spark.authenticate.secret =\n"])
def test_standalone_cluster_without_a_secret_is_refused_with_both_lines(mistakes_of: MistakesOf, secret: str) -> None:
    (mistake,) = mistakes_of(f"lockstep.spark.master = spark://a:7077\n{secret}")
    assert mistake.startswith("5 lockstep.spark.master: needs a secret")
    assert "Write lockstep.spark.conf.spark.authenticate.secret = ${file:" in mistake
    assert "and the same spark.authenticate.secret, with spark.authenticate true, into spark-defaults.conf" in mistake


def test_connections_of_a_cluster_are_always_encrypted(mistakes_of: MistakesOf, load_text: LoadText) -> None:
    off = "lockstep.spark.conf.spark.network.crypto.enabled = false\n"
    (mistake,) = mistakes_of(f"lockstep.spark.master = spark://a:7077\n{SECRET}{off}")
    assert "needs spark.network.crypto.enabled=true" in mistake
    assert load_text(off).flows, "on this machine nothing goes over a network"


def test_sparks_own_settings_reach_every_flow(load_text: LoadText) -> None:
    loaded = load_text(
        "B->A.enabled = true\nlockstep.spark.master = k8s://https://k:6443\n"
        "lockstep.spark.conf.spark.kubernetes.container.image = lockstep:1\n"
        "lockstep.spark.conf.spark.executor.cores = 4\n"
    )
    assert not loaded.unused
    assert [dict(flow.data_plane.spark.conf) for flow in loaded.flows] == 2 * [
        {"spark.kubernetes.container.image": "lockstep:1", "spark.executor.cores": "4"}
    ]
    assert "lockstep:1" not in repr(loaded.flows[0].data_plane.spark), "a setting may be a secret"


@pytest.mark.parametrize("key", PINNED)
def test_pinned_spark_key_is_refused(mistakes_of: MistakesOf, key: str) -> None:
    (mistake,) = mistakes_of(f"lockstep.spark.conf.{key} = 17\n")
    assert f"cannot be set: {key} " in mistake
    assert PINNED[key].reason in mistake


def test_pinned_spark_key_with_its_own_value_is_accepted(load_text: LoadText) -> None:
    load_text("".join(f"lockstep.spark.conf.{key} = {pin.value}\n" for key, pin in PINNED.items() if pin.value))


def test_kubernetes_needs_an_image(mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of("lockstep.spark.master = k8s://https://k:6443\n")
    assert "needs lockstep.spark.conf.spark.kubernetes.container.image" in mistake


def test_only_sparks_settings(mistakes_of: MistakesOf) -> None:
    assert "names no setting of Spark" in mistakes_of("lockstep.spark.conf.executor.cores = 4\n")[0]


@pytest.mark.parametrize("cores", ["0", "two"])
def test_executors_have_a_whole_number_of_cores(mistakes_of: MistakesOf, cores: str) -> None:
    assert mistakes_of(f"lockstep.spark.conf.spark.executor.cores = {cores}\n")


def test_spark_conf_of_one_flow_is_unused(load_text: LoadText) -> None:
    (unused,) = load_text("A->B.lockstep.spark.conf.spark.executor.cores = 4\n").unused
    assert "one Spark serves all flows" in unused.message
