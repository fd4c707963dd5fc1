// What an operator can ask for: its words, its scope in words, and the request. Pure.

/**
 * @typedef {object} Action
 * @property {string} flow
 * @property {string} title What it is, as on its button.
 * @property {string} scope What it is about, in words.
 * @property {string} does
 * @property {string} loses
 * @property {"check" | "type"} confirm `type`: the flow's name has to be typed.
 * @property {boolean} [isGrave] The button is red.
 * @property {string} path Where the request goes, behind the flow.
 * @property {Record<string, unknown>} body
 */

/** @typedef {{ label: string, does: (scope: string) => string, loses: string, isGrave?: boolean }} Words */

const NO_RECORD = "No record is lost, while the source keeps its records.";

/** @type {Readonly<Record<string, Words>>} */
const WORDS = {
  pause: {
    label: "Pause",
    does: (scope) => `${scope} is not copied any more, until somebody resumes it. Its processes and assignments stay.`,
    loses: `${NO_RECORD} Until then the target has older data, and the flow is not ready to switch.`,
  },
  resume: {
    label: "Resume",
    does: (scope) => `${scope} goes on where it was. What is paused or stopped around it stays so.`,
    loses: "Nothing is lost.",
  },
  stop: {
    label: "Stop",
    does: (scope) => `${scope} drains, writes down how far it is, and ends. Resume starts it again.`,
    loses: `${NO_RECORD} Until then the target has older data, and the flow is not ready to switch.`,
  },
  restart: {
    label: "Restart",
    does: (scope) => `${scope} drains and begins anew where it was. What has failed too often starts again.`,
    loses: "Nothing is lost. The copy rests for some seconds.",
  },
  refresh: {
    label: "Refresh",
    does: (scope) => `Every round of ${scope} is done now: new topics, groups, ACLs and configs are looked for.`,
    loses: "Nothing is lost.",
  },
  "sync-groups": {
    label: "Sync groups",
    does: () => "Checkpoints are emitted, and the groups on the target are moved to their translated offsets now.",
    loses: "Nothing is lost. A group with members on the target is left alone.",
  },
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
  const words = WORDS[verb];
  if (!words) throw new Error(`no words for the command ${verb}`);
  const scope = scopeInWords(subject, flow);
  return {
    flow,
    title: words.label,
    scope,
    does: sentence(words.does(scope)),
    loses: words.loses,
    confirm: "check",
    isGrave: words.isGrave,
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
    confirm: choice.confirm === "type" || choice.confirm === "flow" ? "type" : "check",
    isGrave: !/^nothing\b/i.test(choice.loses),
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
  const scope = topics.length ? `the topics ${topics.join(", ")} of ${flow}` : `every topic of ${flow}`;
  return {
    flow,
    title: "Verify",
    scope,
    does: `${sentence(scope)} is compared with its source, record by record, up to where it is now.`,
    loses: "Nothing is lost. Both clusters are read, as far as the limit allows.",
    confirm: "check",
    path: "/verifications",
    body: options,
  };
}

/** @typedef {"switchover" | "failover" | "failback"} SwitchVerb */

/** @type {Readonly<Record<SwitchVerb, Words>>} */
const SWITCHES = {
  switchover: {
    label: "Switch over",
    does: (scope) => `Clients of ${scope} move to the target. Writers are stopped, the rest is copied, groups are moved.`,
    loses: "No record is lost. Clients rest until they work on the target.",
  },
  failover: {
    label: "Fail over",
    does: (scope) => `${scope} is stopped where it is, without its source, and groups are moved to the target.`,
    loses: "Records that the source has accepted and that are not copied are lost. The check counts those it knows of.",
    isGrave: true,
  },
  failback: {
    label: "Fail back",
    does: (scope) => `What was written since is copied back, and clients of ${scope} move back to the source.`,
    loses: "No record is lost, unless records that only the source has are left. Clients rest until they work there.",
  },
};

/**
 * Return the action of a switch.
 *
 * @param {string} flow
 * @param {SwitchVerb} verb
 * @param {Record<string, unknown>} options As the API takes them.
 * @param {{ does?: string, loses?: string }} said What the console said in its check. It knows more.
 * @returns {Action}
 */
export function switchAction(flow, verb, options, said = {}) {
  const words = SWITCHES[verb];
  const topics = Array.isArray(options.topics) ? options.topics : [];
  const scope = topics.length ? `the topics ${topics.join(", ")} of ${flow}` : scopeInWords("flow", flow);
  const drill = options.drill === true;
  const drilled = "It is a drill: no hook runs, and the flow is resumed at the end.";
  return {
    flow,
    title: drill ? `${words.label} (drill)` : words.label,
    scope,
    does: [said.does || sentence(words.does(scope)), drill ? drilled : ""].filter(Boolean).join(" "),
    loses: said.loses || (drill ? "No record is lost. Copying rests for some seconds." : words.loses),
    confirm: verb === "failover" && !drill ? "type" : "check",
    isGrave: words.isGrave && !drill,
    path: "/switches",
    body: { verb, ...options, dry_run: false },
  };
}

/**
 * Return the action that continues or takes back a switch that is under way.
 *
 * @param {string} flow
 * @param {Api.Switch} row
 * @param {"continue" | "abort"} what
 * @returns {Action}
 */
export function underWayAction(flow, row, what) {
  const isBack = what === "abort";
  return {
    flow,
    title: isBack ? "Take it back" : "Go on",
    scope: `the ${row.verb} of ${scopeInWords("flow", flow)} that is under way`,
    does: isBack
      ? "The flow is resumed, and the opposite flow gets the state that it had. Groups that were moved stay moved."
      : "The switch goes on with the first step that is not done. Another process that works at it ends.",
    loses: isBack ? "No record is lost. The evidence says what is not taken back." : "Nothing is lost by going on.",
    confirm: "check",
    isGrave: isBack,
    path: `/switches/${encodeURIComponent(row.switch)}/${what}`,
    body: {},
  };
}

/** @param {string} text */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
