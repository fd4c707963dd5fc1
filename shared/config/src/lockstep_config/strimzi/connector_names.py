"""The topics that each connector of a flow reads and writes in MirrorMaker, if their settings differ.

In MirrorMaker each connector has a `config` of its own. The source connector names copies and offset syncs by its
own, and the checkpoint connector looks for them by its own. In Lockstep a flow has one value, and the source
connector's counts. This module is pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep_config.keys.key_types import ALIAS_KEYS
from lockstep_config.keys.mm2_keys import DEFAULT_POLICY, IDENTITY_POLICIES, KEYS
from lockstep_config.text.values import is_true
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from lockstep_rules.versions import DEFAULT_VERSION, UnknownVersion, find_rules
from lockstep_state.names import Flow

POLICY = "replication.policy.class"
SEPARATOR = "replication.policy.separator"
INTERNAL_SEPARATOR = "replication.policy.internal.topic.separator.enabled"
LOCATION = "offset-syncs.topic.location"
NAMING_KEYS = (POLICY, SEPARATOR, INTERNAL_SEPARATOR, LOCATION, *ALIAS_KEYS)
"""The keys that decide where one connector finds what another wrote."""


@dataclass(frozen=True, slots=True)
class ConnectorNames:
    """The names of topics that one connector uses in MirrorMaker.

    `offset_syncs` is the topic's name and the side that it is on, `copy` the name of the topic `orders` on the
    target.
    """

    offset_syncs: tuple[str, str]
    copy: str
    checkpoints: str


def default_value(key: str, flow: Flow) -> str:
    """Return the value that a connector has if its `config` does not set `key`."""
    if key in ALIAS_KEYS:
        return flow.source if key == ALIAS_KEYS[0] else flow.target
    return (KEYS[key].default if key in KEYS else None) or ""


def connector_names(settings: Mapping[str, str], flow: Flow, version: str) -> ConnectorNames | None:
    """Return the names that a connector uses, or None if its policy is not one of MirrorMaker's.

    Args:
        settings: The connector's values by key. A missing key has its default.
        flow: The flow, whose aliases are defaults.
        version: MirrorMaker's, as in `lockstep.mm2.version`. A version whose rules are not known counts as the
            default.
    """
    values = {key: settings.get(key, default_value(key, flow)).strip() for key in NAMING_KEYS}
    policy = _policy(values, version)
    if policy is None:
        return None
    source, target = (values[key] for key in ALIAS_KEYS)
    on_target = values[LOCATION] == "target"
    return ConnectorNames(
        offset_syncs=(policy.offset_syncs_topic(source if on_target else target), values[LOCATION]),
        copy=policy.format_remote_topic(source, "orders"),
        checkpoints=policy.checkpoints_topic(source),
    )


def _policy(values: Mapping[str, str], version: str) -> ReplicationPolicy | None:
    try:
        rules = find_rules(version)
    except UnknownVersion:
        rules = find_rules(DEFAULT_VERSION)
    internal = is_true(values[INTERNAL_SEPARATOR]) and rules.separator_in_internal
    if values[POLICY] in IDENTITY_POLICIES:
        return IdentityReplicationPolicy(values[ALIAS_KEYS[0]], values[SEPARATOR], internal)
    return DefaultReplicationPolicy(values[SEPARATOR], internal) if values[POLICY] == DEFAULT_POLICY else None


def explain_difference(
    source: ConnectorNames | None, checkpoint: ConnectorNames | None, targets: str, version: str
) -> str:
    """Return the sentence about MirrorMaker's behaviour if its source and checkpoint connector use these names."""
    if source is None or checkpoint is None:
        return "In MirrorMaker the checkpoint connector then names topics by another rule than the source connector."
    if source.offset_syncs != checkpoint.offset_syncs:
        wanted, side = checkpoint.offset_syncs
        written, its_side = source.offset_syncs
        return (
            f"In MirrorMaker the checkpoint connector then reads offset syncs from {wanted} on the {side}, but the "
            f"source connector writes them to {written} on the {its_side}. So it writes no checkpoints and moves no "
            "groups."
        )
    if source.copy != checkpoint.copy:
        return (
            f"In MirrorMaker checkpoints then name {checkpoint.copy}, but the copy of orders on {targets} is "
            f"{source.copy}. So no position that it writes is of a topic that is there."
        )
    if source.checkpoints != checkpoint.checkpoints:
        return (
            f"In MirrorMaker checkpoints are then in {checkpoint.checkpoints}; here they are in {source.checkpoints}."
        )
    return f"By the rules of MirrorMaker {version} both find the same topics, so there it works as here."
