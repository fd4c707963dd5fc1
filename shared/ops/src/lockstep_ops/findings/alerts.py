"""The alerts of `deploy/helm/lockstep/rules/lockstep.rules.yaml`, with what to do about each.

The sections of `docs/troubleshoot/alerts.md` are made of these.
"""

import re
from dataclasses import dataclass

from lockstep_ops.findings.finding_kind import GuidedFindingKind


@dataclass(frozen=True, slots=True)
class AlertKind(GuidedFindingKind):
    """An alert. `title` says when it fires."""

    FAMILY = "alert"
    PAGE = "docs/troubleshoot/alerts.md"

    @property
    def heading(self) -> str:
        """Return the heading of its section: the words of its code."""
        return re.sub(r"(?<!^)(?=[A-Z])", " ", self.code)

    @property
    def anchor(self) -> str:
        """Return the anchor of its section."""
        return self.heading.lower().replace(" ", "-")


ALERTS = (
    AlertKind(
        "LockstepLagging",
        "`max(lockstep_lag_seconds - 1.05 * lockstep_delay_seconds) > 300` for 5 minutes, of partitions that are "
        "neither paused nor halted.",
        "Records wait for more than five minutes beyond `lockstep.delay`. During a first copy this is normal.",
        "[Lag grows](lag.md#lag-grows).",
        "warning",
        look_at="The dashboard's *Partitions furthest behind*, *Records a second*, *Bytes held by slots*.",
    ),
    AlertKind(
        "LockstepLagUnknown",
        "`lockstep_lag_unknown_partitions > 0` for 5 minutes.",
        "The source does not answer, the target's log is shorter than what was acknowledged, or a partition is halted "
        "(`in-doubt`, `source-truncated`, `target-truncated`). `lockstep_lag_records` has no sample for these "
        "partitions.",
        "[The lag is unknown](lag.md#the-lag-is-unknown).",
        "warning",
        look_at="`lockstep status FILE --partitions`: *why*.",
    ),
    AlertKind(
        "LockstepPartitionsNotCopied",
        '`lockstep_partition_states{state=~"not-begun|silent"} > 0` for 10 minutes.',
        "The flow selects these partitions and no slot copies them.",
        "`not-begun`: [a topic that is not copied](topic-not-copied.md). `silent`: [a slot does not "
        "work](lag.md#a-slot-does-not-work). At a first start with many topics, wait.",
        "warning",
        look_at="`lockstep status FILE --partitions`: *state* and *why*. The logs of topic-sync and the data plane.",
    ),
    AlertKind(
        "LockstepPartitionStuck",
        "`lockstep_partition_stuck == 1` for a minute, by topic.",
        "Records wait, the copy has not moved for a minute, and nothing has halted it.",
        "[One partition does not move](lag.md#one-partition-does-not-move).",
        "critical",
        look_at="The event `PartitionStuck` for the offsets, and the brokers that lead the partition on both sides.",
    ),
    AlertKind(
        "LockstepPartitionHalted",
        "`lockstep_halted_partitions > 0` for a minute, by `case`.",
        "Going on would lose or double records. Nothing of these partitions is copied, and the source's retention "
        "does not wait.",
        "[Decide](halted-partition.md#decide).",
        "critical",
        look_at="`lockstep status FILE --only trouble`.",
    ),
    AlertKind(
        "LockstepGap",
        "`increase(lockstep_gaps_total[1h]) > 0`, by `case`; for a process younger than an hour, what it has counted "
        "since it began.",
        "A partition met a gap and continued, by a policy of the file. Records can be missing from the copy, or be in "
        "it twice. The alert fires for an hour.",
        "[A policy has decided already](halted-partition.md#a-policy-has-decided-already).",
        "critical",
        look_at="The events `GapFound` and `GapSkipped`, `CopyRestarted` or `ResumedWithDoubt`. "
        "`lockstep_target_lost_offsets_total` counts offsets of the target that stay gone.",
    ),
    AlertKind(
        "LockstepRecordsGivenUp",
        "`lockstep_given_up_offsets_total` has grown within an hour, by topic.",
        "So many offsets of the source, markers and compacted records included, are not on the target and will not be.",
        "As for [Lockstep Gap](#lockstep-gap).",
        "critical",
        look_at="`lost` in the event `GapSkipped` or `CopyRestarted`: the first and last of them.",
    ),
    AlertKind(
        "LockstepQuarantined",
        "`lockstep_quarantined_total` has grown within an hour, by topic.",
        "The target refused records, or batches cannot be read. They are in the quarantine topic.",
        "[Quarantine](quarantine.md#what-to-do).",
        "warning",
        look_at="The event `BatchQuarantined`.",
    ),
    AlertKind(
        "LockstepVerifyDifferences",
        "`lockstep_verify_differences > 0`.",
        "A topic is not equal to its copy. The alert stays until a comparison finds it equal.",
        "Do not move consumers to the copy yet. *foreign*: stop the client that writes into the copy. *missing*: set "
        "the offset of the partition before the first missing record ([decide](halted-partition.md#decide)). Later "
        "records are then in the copy twice. Then run `lockstep verify FILE --again --flow 'A->B'`.",
        "critical",
        look_at="`lockstep verify report FILE --flow 'A->B'`: each difference with its "
        "[kind](../guides/verify.md#what-can-be-found) and both offsets. `lockstep verify show FILE --flow 'A->B' "
        "TOPIC-PARTITION OFFSET`: both records.",
    ),
    AlertKind(
        "LockstepVerifiedLag",
        "`lockstep_verified_lag_seconds > 3600` for 10 minutes.",
        "For an hour no comparison of a topic has reached the end of its copy, with `lockstep.verify.enabled`.",
        "Raise `lockstep.verify.max.bytes.per.second` or `lockstep.verify.tasks.max` ([verify "
        "copies](../guides/verify.md#all-the-time)).",
        "warning",
        look_at="`lockstep verify report FILE --flow 'A->B'`: *Waiting* has the reason if a cluster refuses or does "
        "not answer. Else the comparison is slower than the copy.",
    ),
    AlertKind(
        "LockstepHeartbeatsMissing",
        "`lockstep_heartbeat_age_seconds` above 60, or -1, for a minute. With `emit.heartbeats.interval.seconds` "
        "above 30 raise the threshold.",
        "The heartbeat service acts, and the target rejects what it writes.",
        "Repair the cluster, the network or the right ([login and rights](login-and-rights.md)).",
        "critical",
        look_at="`/status` of the heartbeat service, `troubles`.",
    ),
    AlertKind(
        "LockstepUpstreamHeartbeatsMissing",
        "`lockstep_upstream_heartbeat_age_seconds > 120` for 2 minutes, by cluster upstream.",
        "Heartbeats of that cluster no longer arrive. If `LockstepHeartbeatsMissing` of the same flow does not fire, "
        "a mirror further upstream has stopped ([heartbeats](../guides/heartbeats.md)).",
        "Repair that mirror. If a cluster was taken away for good, delete its `X.heartbeats` topic here.",
        "warning",
        look_at="The same metric of the mirrors in between: the first one where the age grows has stopped. Check "
        "the clocks too.",
    ),
    AlertKind(
        "LockstepGroupSyncFailing",
        '`lockstep_checkpoint_groups{phase="failing"} > 0` for 10 minutes.',
        "Offsets of groups cannot be read on the source, or checkpoints cannot be written. Such a group reads many "
        "records again if it moves now.",
        "[Failing](group-not-synced.md#failing).",
        "warning",
        look_at="`lockstep status FILE --groups`.",
    ),
    AlertKind(
        "LockstepGroupsSkip",
        '`lockstep_groups_held{why=~"ahead-on-target|rewound-on-source"} > 0` for 10 minutes, by `why`.',
        "The offset of the target's group is higher than the translated one. Consumers that move now skip the records "
        "in between.",
        "[Ahead on the target, rewound on the source](group-not-synced.md#ahead-on-the-target-rewound-on-the-source).",
        "warning",
        look_at="`lockstep status FILE --groups`, the event `GroupAhead`.",
    ),
    AlertKind(
        "LockstepGroupsRefused",
        '`lockstep_groups_held{why="refused"} > 0` for 10 minutes.',
        "Lockstep may not describe these groups on the target, or not commit for them.",
        "[Refused](group-not-synced.md#refused).",
        "warning",
        look_at="`lockstep status FILE --groups`.",
    ),
    AlertKind(
        "LockstepNotReadyToSwitch",
        '`sum by (flow) (lockstep_switch_blockers{reason!~"groups-not-synced|delayed"}) > 0` for 10 minutes, of '
        "flows that are not stopped.",
        "Clients could not move to the target now without a loss, or it is not known. During a first copy it is "
        "normal.",
        "What the [table of reasons](../reference/switch.md#ready-to-switch) says. If the reason is `lag` and the "
        "flow often needs more time, raise `lockstep.switch.max.lag.seconds`.",
        "warning",
        look_at="`lockstep status FILE`: the line *ready to switch* has the first reason. `--output json` has all "
        "of them, as `switch_blockers`.",
    ),
    AlertKind(
        "LockstepRoundsFailing",
        "More than 0.9 of a kind of round failed over 15 minutes, by service and round.",
        "One kind of periodic work is not done at all, such as the topic refresh or the group sync.",
        "Follow the message ([login and rights](login-and-rights.md)).",
        "warning",
        look_at="`/status` of the service, `troubles`.",
    ),
    AlertKind(
        "LockstepTopicsFailing",
        '`lockstep_topics{phase=~"failed|failing"} > 0` for 10 minutes.',
        "Copies of topics cannot be created, cannot grow, or cannot get their configs.",
        "[Failed](topic-not-copied.md#failed).",
        "warning",
        look_at="`lockstep status FILE --topics`. `lockstep_missing_partitions` counts partitions that are not copied.",
    ),
    AlertKind(
        "LockstepNobodyActs",
        "The sum of `lockstep_acting` over a flow's replicas of a service is 0 for three minutes, or the series has "
        "gone.",
        "The work of this service in this flow is not done.",
        "Start what does not run. Repair the target or the right on the group. If a service ended with exit code 2, "
        "its last line has what is wrong with the configuration.",
        "critical",
        look_at="`kubectl get pods`. `lockstep_ready` 0: the target's control topics cannot be read. `/status`: "
        "`standing`, `troubles`. Events `LeadChangesOften`, `InstanceRenamed`.",
    ),
    AlertKind(
        "LockstepSlotsNotRunning",
        "`lockstep_slots`: more `assigned` than `running` and `paused` together, for three minutes.",
        "No slot copies the partitions of those slots.",
        "[A slot does not work](lag.md#a-slot-does-not-work).",
        "critical",
        look_at="`lockstep status FILE --slots`, the event `SlotNotStarted`. With executors: do their pods run?",
    ),
    AlertKind(
        "LockstepSlotRestarting",
        "`increase(lockstep_slot_restarts_total[1h]) > 3`.",
        "A slot often ends by itself, and is started again. Nothing is lost or doubled by that.",
        "Give it more memory, or lower `lockstep.max.in.flight.bytes`. A Python error in the log is a bug of "
        "Lockstep: report it.",
        "warning",
        look_at="The data plane's log: each end with its reason. `killed by SIGKILL` and nothing else: compare the "
        "container's memory with its limit.",
    ),
    AlertKind(
        "LockstepDegraded",
        "`lockstep_degraded == 1` for 15 minutes, or again and again within that time.",
        "Something fails and is tried again, for which there is no other alert.",
        "Follow the message.",
        "warning",
        look_at="`/status`, `troubles`: what, and why.",
    ),
    AlertKind(
        "LockstepTargetDown",
        "`up == 0` for three minutes, of targets that showed Lockstep's metrics within a day, or whose job has "
        "`lockstep` in its name.",
        "The process has ended, or its page is out of reach (a NetworkPolicy, a missing token).",
        "If the pod is well, let Prometheus through. Else read its last log line.",
        "warning",
        look_at="Prometheus' page of targets. `kubectl describe pod`, `kubectl logs --previous`.",
    ),
    AlertKind(
        "LockstepCertificateExpiresSoon",
        "`lockstep_certificate_expires_timestamp_seconds` less than 14 days ahead, by cluster and use.",
        "A certificate expires soon. `keystore`: Lockstep's own, the one of its chain that expires first. "
        "`truststore`: the authority for the brokers. An expired one is ignored while another one is valid. "
        "`token-truststore`: that for a token endpoint.",
        "Replace the file, and remove an old authority. Services load it without a restart "
        "([rotation](../guides/rotate-credentials.md)).",
        "warning",
        look_at="Which secret or file it is (`lockstep config show FILE`). `/status`, `configuration`: new files "
        "that are not in use, and why.",
    ),
    AlertKind(
        "LockstepCertificateExpires",
        "The same with less than three days to go, or past.",
        "Once it has expired, no new connection can be made.",
        "Replace it now.",
        "critical",
        look_at="As above.",
    ),
)
