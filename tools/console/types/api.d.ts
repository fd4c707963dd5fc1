// The JSON of the console's API, as far as the front end reads it. Times are Unix milliseconds.
// null is unknown. A field with a question mark is absent if the target did not answer.

declare namespace Api {
  interface Session {
    user: string;
    may_read: boolean;
    may_act: boolean;
    read_only: boolean;
    why_read_only: string;
    takes_token: boolean;
    version: string;
    at_ms: number;
    file?: string;
    instance?: string;
    flows?: string[];
  }

  interface Blocker {
    reason: string;
    subject: string;
    text: string;
    blocks: boolean;
    details: Record<string, unknown>;
  }

  interface Trouble {
    what: string;
    why: string;
    code: string;
  }

  interface Cause {
    code?: string;
  }

  interface CodeLine {
    code: string;
    kind: string;
    severity: string;
    title: string;
  }

  interface CodeEntry extends CodeLine {
    meaning: string;
    look_at?: string;
    fix: string;
    page: string;
  }

  interface Choice {
    verb: string;
    label: string;
    does: string;
    loses: string;
    subject: string;
    arguments: Record<string, unknown>;
    confirm: string;
    line?: string;
  }

  interface Decision {
    flow: string;
    kind: string;
    subject: string;
    since_ms: number | null;
    case?: string;
    code?: string;
    sentence: string;
    range?: unknown;
    choices: Choice[];
  }

  interface History {
    worst_ms: number | null;
    worst_at_ms: number | null;
    known_s: number;
  }

  interface Service {
    service: string;
    connector: string;
    wanted: string;
    replicas: number | null;
    leaders: { label: string; instance: string; since_ms: number }[];
    trouble: string;
    cause?: Cause | null;
  }

  interface Slot {
    slot: number;
    phase: string;
    wanted: string;
    partitions: number;
    resting: number;
    held_bytes: number;
    trouble: string;
    cause?: Cause | null;
  }

  interface Cluster {
    alias: string;
    product: string;
    lacks: string[];
  }

  interface Flow {
    flow: string;
    at_ms: number;
    fine: boolean;
    sentence?: string;
    source?: string;
    target?: string;
    unknown?: string;
    /** Of an unknown flow: when it was known last; null: not since the console began. */
    known_ms?: number | null;
    lag_records?: number | null;
    lag_at_least?: number;
    lag_unknown?: number;
    lag_ms?: number | null;
    not_copying?: Record<string, number>;
    groups_held?: Record<string, number>;
    passed_over?: number;
    appends?: Record<string, number>;
    exact?: boolean | null;
    heartbeat?: string;
    empty_selections?: string[];
    switch_ready: boolean | null;
    switch_blockers: Blocker[];
    held_back?: { scope: string; wanted: string }[];
    switch_blockers_left_out?: number;
    decisions_left_out?: number;
    troubles?: Trouble[];
    troubles_left_out?: number;
    clusters?: Cluster[];
    history?: History | null;
    verified_until_ms?: number | null;
    decisions?: Decision[];
    services?: Service[];
    slots?: Slot[];
  }

  interface Partition {
    topic: string;
    partition: number;
    state: string;
    wanted: string;
    why: string;
    trouble: string;
    cause?: Cause | null;
    case: string;
    lag_records: number | null;
    lag_ms: number | null;
    source_end: number | null;
    upstream: number;
    copied_to?: number | null;
    target_end?: number | null;
    slot: number;
    verified_until_ms?: number | null;
    spark?: (number | null)[];
  }

  interface Topic {
    topic: string;
    remote: string;
    phase: string;
    wanted: string;
    partitions: number;
    halted: number;
    lag_records: number | null;
    lag_ms: number | null;
    trouble: string;
    cause?: Cause | null;
    note: string;
  }

  interface GroupTopic {
    topic: string;
    place: string;
    exact: number;
    behind: number;
    waiting: number;
    records: number;
    why: string;
  }

  interface Group {
    group: string;
    phase: string;
    readiness?: string;
    exact: number;
    behind: number;
    records: number;
    waiting: number;
    synced: boolean;
    held: string;
    why: string;
    trouble: string;
    cause?: Cause | null;
    topics?: GroupTopic[];
    members?: unknown;
  }

  interface Page {
    at_ms: number;
    total: number;
    matching: number;
    unknown?: string;
  }

  interface Lag {
    step_s: number;
    begins_ms: number;
    lag_ms: (number | null)[];
    lag_records: (number | null)[];
    records_per_s: (number | null)[];
    worst: { topic: string; partition: number; begins_ms: number; step_s: number; lag_ms: (number | null)[] }[];
  }

  interface EventLine {
    kind: string;
    about?: string;
    text?: string;
    at_ms?: number;
    timestamp_ms?: number;
    partition?: number;
    offset?: number;
    warning?: boolean;
    detail?: Record<string, unknown>;
    [field: string]: unknown;
  }

  interface SwitchStep {
    step: string;
    state: string;
    began: string | null;
    ended: string | null;
    seconds: number | null;
    text: string;
  }

  interface Switch {
    switch: string;
    verb: string;
    flow: string;
    from: string;
    to: string;
    phase: string;
    drill: boolean;
    began: string | null;
    ended: string | null;
    seconds: number | null;
    lost: number | null;
    lost_unknown_partitions: number;
    source_known_until: string | null;
    groups_known_until: string | null;
    late: number | null;
    steps: SwitchStep[];
    topics: { topic: string; target_topic: string; partitions: Record<string, unknown>[] }[];
    groups: { group: string; state: string; text: string; read_again: number; known_until: string | null }[];
    lasting: string[];
    plan_steps?: { step: string; meaning: string }[];
  }

  interface Refusal {
    code: string;
    text: string;
    subject?: string;
    details?: Record<string, unknown>;
  }

  interface Allowance {
    name: string;
    meaning: string;
    verbs: string[];
  }

  interface SwitchCheck {
    flow?: string;
    verb: string;
    unknown?: string;
    refusals: Refusal[];
    notes?: string[];
    steps?: { step: string; meaning?: string; text?: string }[];
    does?: string;
    loses?: string;
    source_known_until?: string | null;
    groups_known_until?: string | null;
  }

  interface VerifiedTopic {
    topic: string;
    partitions: number;
    records: number;
    bytes: number;
    differ: number;
    missing: number;
    extra: number;
    beyond: number;
    not_verified: number;
    behind: number;
    seconds: number;
  }

  interface Difference {
    topic: string;
    partition: number;
    kind: string;
    source_offset: number;
    target_offset: number;
  }

  interface Verification {
    flow: string;
    depth: string;
    equal: boolean;
    topics: VerifiedTopic[];
    differences: Difference[];
    beyond: { topic: string; partition: number; records: number; target_offset: number }[];
    not_verified: { topic: string; partition: number; reason: string; first: number; last: number; records: number }[];
    waiting: Record<string, string>;
    verified_until_ms?: number | null;
    request?: { id: string; phase: string; since_ms: number; depth: string; topics: string[] } | null;
    unknown?: string;
    at_ms?: number;
  }

  interface PlannedChange {
    action: "create" | "alter" | "delete";
    kind: string;
    cluster: string;
    name: string;
    source: string;
    key: string;
    before: string | null;
    after: string | null;
    partitions: number;
    replication_factor: number;
    configs: Record<string, string>;
  }

  interface FlowPlan {
    flow: string;
    enabled: boolean;
    changes: PlannedChange[];
    copy: {
      rate: number;
      rate_basis: string;
      bytes: number | null;
      records: number | null;
      seconds: number | null;
      topics: { topic: string; remote: string; records: number | null; bytes: number | null; seconds: number | null }[];
    };
    groups: { group: string; fate: string; reason: string }[];
    hazards: {
      code: string;
      title: string;
      severity: string;
      subjects: string[];
      details: string[];
      fix: string;
      page: string;
    }[];
    rights: { cluster: string; lacks: string; command: string }[];
    remarks: string[];
    held_back: { scope: string; wanted: string }[];
  }

  interface Plan {
    made_at_ms: number;
    release: string;
    flows: FlowPlan[];
    summary: {
      create: number;
      alter: number;
      delete: number;
      records: number | null;
      bytes: number | null;
      seconds: number | null;
      hazards: number;
      notes: number;
      rights: number;
    };
  }

  interface ClusterPage {
    alias: string;
    product?: string | null;
    version?: string | null;
    bootstrap?: string;
    flows: string[];
    reachable?: boolean | null;
    why?: string;
    capabilities?: { name: string; can: boolean | null; costs?: string }[];
    lacks: { name: string; costs: string }[] | null;
    [field: string]: unknown;
  }

  interface CommandReply {
    id: string;
    flow: string;
    verb: string;
    subject: string;
    by: string;
    at_ms: number;
    phase: string;
    sentence: string;
    missing: string[];
    trouble: string;
    steps: { verb: string; lines: string[] }[];
  }

  interface Records {
    topic: string;
    cluster: string;
    at_ms: number;
    records: EventLine[];
    ends?: Record<string, number>;
    older: number | null;
    unknown?: string;
  }
}
