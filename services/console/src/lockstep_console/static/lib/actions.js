// What an operator can ask for: its words, its scope in words, and the request. Pure.

/**
 * @typedef {object} Action
 * @property {string} flow
 * @property {string} title What it is, as on its button.
 * @property {string} scope What it is about, in words.
 * @property {string} [does] Without it the console is asked, by a request that changes nothing.
 * @property {string} [loses]
 * @property {"check" | "type"} confirm `type`: the flow's name has to be typed.
 * @property {boolean} [needsOffset] The operator names the source offset at which the copy goes on.
 * @property {boolean} [isGrave] The button is red.
 * @property {string} path Where the request goes, behind the flow.
 * @property {Record<string, unknown>} body
 */

/** @type {Readonly<Record<string, string>>} */
const LABELS = {
  pause: "Pause",
  resume: "Resume",
  stop: "Stop",
  restart: "Restart",
  refresh: "Refresh",
  "sync-groups": "Sync groups",
};

/** The verbs for a whole flow, in the order of their buttons. */
export const FLOW_VERBS = ["pause", "resume", "stop", "restart", "refresh", "sync-groups"];

/**
 * Return a scope of a command in words: `topic:orders` is "the topic orders of A->B".
 *
 * @param {string} subject
 * @param {string} flow
 */
export function scopeInWords(subject, flow) {
  const colon = subject.indexOf(":");
  const kind = colon < 0 ? subject : subject.slice(0, colon);
  const name = colon < 0 ? "" : subject.slice(colon + 1);
  if (kind === "" || kind === "flow") return `the whole flow ${flow}`;
  const noun = { topic: "topic", partition: "partition", slot: "slot", group: "group", connector: "connector" }[kind];
  return noun ? `the ${noun} ${name} of ${flow}` : `${subject} of ${flow}`;
}

/**
 * Return an action of a command.
 *
 * @param {string} flow
 * @param {string} verb
 * @param {string} [subject]
 * @returns {Action}
 */
export function commandAction(flow, verb, subject = "flow") {
  return {
    flow,
    title: LABELS[verb] ?? verb,
    scope: scopeInWords(subject, flow),
    confirm: "check",
    path: "/commands",
    body: { verb, subject, arguments: {} },
  };
}

/**
 * Return the action of one choice of a decision. Its words are the console's.
 *
 * @param {Api.Decision} decision
 * @param {Api.Choice} choice
 * @returns {Action}
 */
export function choiceAction(decision, choice) {
  return {
    flow: decision.flow,
    title: choice.label,
    scope: scopeInWords(choice.subject, decision.flow),
    does: choice.does,
    loses: choice.loses,
    confirm: "check",
    needsOffset: choice.verb === "restart-from" && choice.arguments.offset === undefined,
    isGrave: !/^(nothing|no record)\b/i.test(choice.loses),
    path: "/commands",
    body: { verb: choice.verb, subject: choice.subject, arguments: choice.arguments },
  };
}

/**
 * Return the action that compares the copies with their source.
 *
 * @param {string} flow
 * @param {Record<string, unknown>} options As the API takes them, such as `topics`.
 * @returns {Action}
 */
export function verifyAction(flow, options) {
  const topics = Array.isArray(options.topics) ? options.topics : [];
  return {
    flow,
    title: "Verify",
    scope: topics.length ? `the topics ${topics.join(", ")} of ${flow}` : `every topic of ${flow}`,
    confirm: "check",
    path: "/verifications",
    body: options,
  };
}

/** @typedef {"switchover" | "failover" | "failback"} SwitchVerb */

/** @type {Readonly<Record<SwitchVerb, string>>} */
const SWITCHES = { switchover: "Switch over", failover: "Fail over", failback: "Fail back" };

/**
 * Return the action of a switch.
 *
 * @param {string} flow
 * @param {SwitchVerb} verb
 * @param {Record<string, unknown>} options As the API takes them.
 * @param {{ does?: string, loses?: string }} check What the console has said in its check.
 * @returns {Action}
 */
export function switchAction(flow, verb, options, check) {
  const topics = Array.isArray(options.topics) ? options.topics : [];
  const isDrill = options.drill === true;
  return {
    flow,
    title: isDrill ? `${SWITCHES[verb]} (drill)` : SWITCHES[verb],
    scope: topics.length ? `the topics ${topics.join(", ")} of ${flow}` : scopeInWords("flow", flow),
    does: check.does,
    loses: check.loses,
    confirm: verb === "failover" && !isDrill ? "type" : "check",
    isGrave: verb === "failover" && !isDrill,
    path: "/switches",
    body: { verb, ...options },
  };
}

/**
 * Return the action that continues or takes back a switch that is under way.
 *
 * @param {string} flow
 * @param {Api.Switch} row
 * @param {"continue" | "abort"} what
 * @param {string[]} allow What it does although it refuses it otherwise.
 * @returns {Action}
 */
export function underWayAction(flow, row, what, allow) {
  const isBack = what === "abort";
  const inSpite = allow.length ? ` It goes on in spite of: ${allow.join(", ")}.` : "";
  const cannotLose = "Nothing is lost by going on.";
  const mayLose = "What the source got after the ends that are written down is not on the target, and nobody knows how much that is.";
  return {
    flow,
    title: isBack ? "Take it back" : "Go on",
    scope: `the ${row.verb} of ${scopeInWords("flow", flow)} that is under way`,
    does: `${
      isBack
        ? "The flow is resumed, and the opposite flow gets the state that it had. Groups that were moved stay moved."
        : "The switch goes on with the first step that is not done. Another process that works at it ends."
    }${inSpite}`,
    loses: isBack ? "No record is lost. The evidence says what is not taken back." : allow.includes("source-gone") ? mayLose : cannotLose,
    confirm: "check",
    isGrave: isBack,
    path: `/switches/${encodeURIComponent(row.switch)}/${what}`,
    body: allow.length ? { allow } : {},
  };
}
