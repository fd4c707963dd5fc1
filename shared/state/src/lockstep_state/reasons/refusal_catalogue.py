"""The codes of commands that are refused before they change anything, each with its sentence."""

from lockstep_state.reasons.reason_code import CatalogueCode


class RefusalCode(CatalogueCode):
    """The codes that say why a switch, a take-over or a hand-back does not begin, continue or go back."""

    # Why a switch does not begin, continue or go back, beside what prevents it at any time (`SwitchReason`).

    SWITCH_UNDER_WAY = (
        "switch-under-way",
        "a {verb} is under way ({id}): see it with lockstep {verb} --status, go on with --continue, or take it back"
        " with --abort",
    )
    SWITCH_ABORTING = "switch-aborting", "{flow}: the {verb} is being taken back: --abort goes on with that"
    NO_SWITCH = "no-switch", "{flow}: no switch has begun"
    NO_SWITCH_TO = "no-switch-to", "{flow}: there is nothing to {act}: no switch has begun"
    SWITCH_ENDED = (
        "switch-ended",
        "{flow}: there is nothing to {act}: the last switch is the {verb} {id}, {phase} since {since}",
    )
    SWITCH_NOT_BEGUN = (
        "switch-not-begun",
        "{flow}: there is nothing to {act}: {asked} has not begun. The last switch is the {verb} {id}, {phase} since"
        " {since}",
    )
    SWITCH_OF_ANOTHER_ID = (
        "switch-of-another-id",
        "{flow}: the last switch is not {asked}: the last switch is the {verb} {id}, {phase} since {since}",
    )
    SWITCH_OF_ANOTHER_VERB = (
        "switch-of-another-verb",
        "{flow}: there is no {asked} to {act}: the last switch is the {verb} {id}, {phase} since {since}{advice}",
    )
    SWITCH_IS_DONE = ("switch-is-done", "{flow}: the {verb} is done: lockstep {then} moves the applications again")
    SWITCH_IS_ABORTED = "switch-is-aborted", "{flow}: the {verb} is aborted already"
    CLIENTS_REDIRECTED = (
        "clients-redirected",
        "{flow}: clients were sent to the other cluster and may have written there, so the {verb} cannot be taken"
        " back. --continue ends it, and lockstep {then} moves the applications again",
    )
    NO_TOPIC_TO_SWITCH = "no-topic-to-switch", "{flow}: there is no topic to switch"
    SWITCH_BY_KEYS = (
        "switch-by-keys",
        "{flow}: keys choose the partition of each record, so a group has no exact place",
    )
    TOPIC_NOT_FOUND = "topic-not-found", "{flow} has not found topic {topic} yet: wait, or run lockstep refresh"
    PARTITIONS_NOT_FOUND = (
        "partitions-not-found",
        "{topic} has {partitions} partitions on {source}, and the flow knows {known}: wait until it has found them"
        " (lockstep refresh)",
    )
    ENDS_UNKNOWN = "ends-unknown", "cluster {cluster} does not say where {count:log} end, {partition} for one"
    LATE_UNKNOWN = (
        "late-unknown",
        "how many records came to {source} after the fence is not known: {cause}",
    )
    SWITCH_TOO_SOON = (
        "switch-too-soon",
        "a switch ended {ago_s} s ago, and a second one within ten minutes is refused without --allow-soon",
    )
    FLOW_RESTS = "flow-rests", "{flow} is {wanted} as a whole: resume it first, or fail back without --topic"
    DIVERGENCE_UNKNOWN = (
        "divergence-unknown",
        "whether {source} lacks {count:record} of {target} is not known: the slots of {flow} have not written down yet"
        " what they copied to {partitions}. See that the data plane of {flow} runs, and do this again",
    )
    DIVERGED = (
        "diverged",
        "{source} has {count:record} that {target} lacks: {partitions}. Say --diverged copy to copy them to {target}"
        " behind what is there, or --diverged leave to keep them on {source} only",
    )
    DIVERGED_AT_MOST = (
        "diverged-at-most",
        "{source} has at most {count:record} that {target} lacks: {partitions}. Say --diverged copy to copy them to "
        "{target} behind what is there, or --diverged leave to keep them on {source} only",
        "Copies may be counted with them.",
    )
    SOURCE_ANSWERS = (
        "source-answers",
        "{source} answers: use lockstep switchover, which loses nothing. Say {option} if {source} must not be used any"
        " more",
    )
    LOSS_UNKNOWN = (
        "loss-unknown",
        "how many records of {partitions} are lost is not known: they were never copied. Say {option} to lose them",
    )
    LOSS_NOT_ALLOWED = (
        "loss-not-allowed",
        "{lost:record} were known on {source} and are not copied: {partitions}. None may be lost without"
        " --allow-data-loss. Say --allow-data-loss {lost} to lose them",
    )
    LOSS_BEYOND_ALLOWED = (
        "loss-beyond-allowed",
        "{lost:record} were known on {source} and are not copied: {partitions}. {allowed:,} may be lost. Say"
        " --allow-data-loss {lost} to lose them",
    )

    # Why a flow is not taken over from MirrorMaker 2, or not handed back to it.

    MIRROR_MAKER_RUNS = (
        "mirror-maker-runs",
        "MirrorMaker 2 still runs: group {group} on {cluster} has {members:member}. Stop it, and wait until the group"
        " is empty",
    )
    OFFSETS_TOPIC_MISSING = (
        "offsets-topic-missing",
        "there is no topic {topic} on {cluster}: name MirrorMaker 2's topic of offsets with --offsets-topic",
    )
    OFFSETS_TOPIC_TO_MAKE = (
        "offsets-topic-to-make",
        "there is no topic {topic} on {cluster}: name MirrorMaker 2's topic of offsets with --offsets-topic, and let"
        " its workers make it",
    )
    OFFSETS_ABSENT = (
        "offsets-absent",
        "{topic} on {cluster} has no offsets of {connector} for the cluster '{alias}': it has none at all",
    )
    OFFSETS_OF_OTHERS = (
        "offsets-of-others",
        "{topic} on {cluster} has no offsets of {connector} for the cluster '{alias}': it has those of {others}."
        " Aliases have to be MirrorMaker 2's",
    )
    PROGRESS_DIFFERS = (
        "progress-differs",
        "the flow has progress of its own, which is not MirrorMaker 2's: {partitions} (for one, {here:,} here and"
        " {theirs:,} there). What it has copied it goes on from; lockstep offsets alter changes that",
    )
    COPIED_AFTER_HAND_BACK = (
        "copied-after-hand-back",
        "{count:partition} went on under MirrorMaker 2 after the hand-back. The data plane has to run and be stopped,"
        " because it alters the offsets: lockstep run, and lockstep stop",
    )
    OWN_END_UNREAD = (
        "own-end-unread",
        "where the flow's own copy ends of {partitions} was not read from {cluster} since it was copied last, so"
        " nobody knows who is further. Let the data plane run while the flow is stopped, and ask again",
    )
    DATA_PLANE_RUNS = (
        "data-plane-runs",
        "the data plane of this flow runs already ({replicas:replica}): end it, or lockstep stop; where it begins is"
        " read when it begins",
    )
    FLOW_RUNS = "flow-runs", "the flow runs: lockstep stop, or say --stop"
    SLOTS_DRAINING = (
        "slots-draining",
        "{slots} did not drain yet: ask again in a moment. If it stays so, end the process of the data plane: the next"
        " one goes on from the target's log",
    )
    SLOTS_ENDED = (
        "slots-ended",
        "{slots} ended without writing down how far it was. Start the data plane, which reads that from the "
        "target{then}",
        '`then` is ", and lockstep stop", or empty where the flow is stopped.',
    )
    END_AWAITED = (
        "end-awaited",
        "where the copy ends of {partitions} was not read from {cluster} yet: ask again in a moment",
    )
    END_UNREAD = (
        "end-unread",
        "where the copy ends of {partitions} was not read from {cluster} yet. Start the data plane, which reads that"
        " from the target{then}",
    )
    END_NOT_SOUGHT = (
        "end-not-sought",
        "the data plane does not say where the copies end, for {scope} has failed as often as"
        " lockstep.auto.restart.max allows ({text}). Mend that, and lockstep restart {scope}",
    )
    SOURCE_KNOWS_END = (
        "source-knows-end",
        "where the copy ends of {partitions} is not known: {cluster} holds {count:record} of {partition} that are not"
        " written down, and {source} did not answer, which alone knows their offsets. Bring {source} back, or say"
        " where it ends: lockstep offsets alter",
    )
    END_IN_DOUBT = (
        "end-in-doubt",
        "where the copy ends of {partitions} is not known ({text}). Mend that and lockstep restart, or say where it"
        " ends: lockstep offsets alter",
    )
    END_OF_UNMIRRORED = (
        "end-of-unmirrored",
        "where the copy ends of {partitions} is not known (its topic is not mirrored now). Mend that and lockstep"
        " restart, or say where it ends: lockstep offsets alter",
    )
    NOTHING_WRITTEN = (
        "nothing-written",
        "nothing is written down of this flow: it has copied nothing, or its state topic was lost",
    )
    NOTHING_TO_HAND_BACK = ("nothing-to-hand-back", "the flow has copied nothing, so there is nothing to hand back")
    MIRROR_MAKER_AHEAD = (
        "mirror-maker-ahead",
        "{place} is further than this flow in {partitions} (for one, {theirs:,} there and {here:,} here): it has"
        " copied since, and goes on from there",
    )
