// A switch as a timeline, and how to begin one: it is checked first, and says what prevents it.

import { Allowances, SwitchForm } from "../parts/switch_form.js";
import { underWayAction } from "../lib/actions.js";
import { Problem, download, flowPath, get } from "../lib/api.js";
import { asSentence, capitalized, inCount, inMoment, inNumber, inTime, isKnown, visible } from "../lib/format.js";
import { html, useState } from "../lib/preact.js";
import { flowSignal, session } from "../lib/store.js";
import { readinessTone, toneOf } from "../lib/tone.js";
import { ActionButton, ReadOnlyNote } from "../parts/action_dialog.js";
import { Details, Empty, Facts, Loading, ProblemNote, Section, State, UnknownNote, useChangedRows, useResource, useThrottled } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { Timeline } from "../parts/timeline.js";

const UNDER_WAY = ["running", "aborting"];

/** @param {{ flow: string }} props */
export function Switch({ flow }) {
  const status = flowSignal(flow).value;
  const body = useResource(`${flow} switch`, (cancel) => get(flowPath(flow, "/switch"), {}, cancel));
  const refresh = useThrottled(body.reload, 1_000);
  const rows = useChangedRows(flow, (key) => key.startsWith("switch"), refresh);
  /** @type {(Api.Switch & { unknown?: string }) | null} */
  const value = body.value;
  const problem = body.problem;
  const hasNone = (problem instanceof Problem && problem.status === 404) || (value !== null && !value.switch && !value.unknown);
  const isUnderWay = value !== null && UNDER_WAY.includes(value.phase);
  const readiness = readinessTone(status);
  return html`<div>
    <p class="lead">
      <${State} word=${readiness.word} tone=${readiness.tone} />
      ${!value?.unknown && status?.switch_blockers?.[0] ? ` ${visible(asSentence(status.switch_blockers[0].text))}` : ""}
    </p>
    ${!value && !problem && html`<${Loading} what="the last switch" />`}
    ${problem !== null && !hasNone && html`<${ProblemNote} problem=${problem} retry=${body.reload} />`}
    ${value?.unknown && html`<${UnknownNote} reason=${value.unknown} />`}
    ${hasNone && html`<${Empty}>This flow has not switched yet.<//>`}
    ${value?.switch && html`<${LastSwitch} flow=${flow} body=${value} rows=${rows} reload=${body.reload} />`}
    ${!isUnderWay && !value?.unknown && html`<${SwitchForm} flow=${flow} onBegun=${refresh} />`}
  </div>`;
}

/** @param {{ flow: string, body: Api.Switch, rows: Record<string, unknown>, reload: () => void }} props */
function LastSwitch({ flow, body, rows, reload }) {
  const isUnderWay = UNDER_WAY.includes(body.phase);
  const title = `${capitalized(body.verb)}${body.drill ? " (drill)" : ""} of ${body.flow}`;
  const meanings = new Map((body.plan_steps ?? []).map((step) => [step.step, step.meaning]));
  const steps = body.steps.map((step) => ({
    name: step.step,
    meaning: meanings.get(step.step),
    state: step.state,
    began: step.began ? inMoment(Date.parse(step.began)) : "",
    seconds: step.seconds,
    text: step.text,
    row: { step, row: rows["switch/current"] ?? body.switch },
  }));
  return html`<${Section} title=${visible(title)} extra=${html`<${State} word=${isUnderWay ? `${body.phase}: under way` : body.phase} tone=${isUnderWay ? "note" : toneOf(body.phase)} />`}>
    <${Facts} facts=${[
      ["Began", body.began ? inMoment(Date.parse(body.began)) : "not yet"],
      ["Took", isKnown(body.seconds) ? inTime(body.seconds * 1_000) : "it has not ended"],
      ["Lost", lostText(body)],
      ["Late", isKnown(body.late) ? `${inCount(body.late, "record")} after the fence` : "unknown"],
      ["Known of the source", body.source_known_until ? `up to ${inMoment(Date.parse(body.source_known_until))}` : "unknown"],
      ["Groups", `${inCount(body.groups.length, "group")}, at most ${inNumber(body.groups.reduce((sum, group) => sum + group.read_again, 0))} records read again`],
    ]} />
    ${isUnderWay && html`<${UnderWay} flow=${flow} body=${body} reload=${reload} />`}
    <${Timeline} label=${`Steps of ${title}`} steps=${steps} />
    ${body.groups.length > 0 && html`<${SwitchGroups} groups=${body.groups} />`}
    ${body.topics.length > 0 && html`<${Details} value=${body.topics} summary=${`Positions of ${inCount(body.topics.length, "topic")}`} />`}
    ${body.lasting.length > 0 &&
    html`<div><h3>Not taken back</h3><ul class="plain">${body.lasting.map((text) => html`<li key=${text}>${visible(asSentence(text))}</li>`)}</ul></div>`}
    <${Evidence} flow=${flow} id=${body.switch} />
  <//>`;
}

/** @param {{ flow: string, body: Api.Switch, reload: () => void }} props */
function UnderWay({ flow, body, reload }) {
  const [allow, setAllow] = useState(/** @type {string[]} */ ([]));
  return html`<div class="notice">
    <p>Its steps are rows on the target: it goes on when this page or the console ends.</p>
    <${ReadOnlyNote} />
    ${session.value?.may_act &&
    html`<details class="options">
      <summary>If a step fails again and again</summary>
      <${Allowances} verb=${body.verb} chosen=${allow} onChange=${setAllow} />
    </details>`}
    <div class="buttons left">
      ${body.phase === "running" && html`<${ActionButton} action=${underWayAction(flow, body, "continue", allow)} onSent=${reload} />`}
      <${ActionButton} action=${underWayAction(flow, body, "abort", allow)} onSent=${reload} />
    </div>
  </div>`;
}

/** @param {Api.Switch} body */
function lostText(body) {
  if (body.lost === null) return "not counted yet";
  const unknown = body.lost_unknown_partitions ? `, unknown for ${inCount(body.lost_unknown_partitions, "partition")}` : "";
  return `${inCount(body.lost, "record")}${unknown}`;
}

/** @param {{ groups: Api.Switch["groups"] }} props */
function SwitchGroups({ groups }) {
  return html`<${Table} label="Groups as the switch left them" rows=${groups} keyOf=${(/** @type {any} */ row) => row.group}
    columns=${/** @type {import("../parts/table.js").Column<Api.Switch["groups"][number]>[]} */ ([
      { title: "Group", name: true, cell: (row) => visible(row.group) },
      { title: "State", cell: (row) => html`<${State} word=${row.state} />` },
      { title: "Read again", number: true, cell: (row) => inNumber(row.read_again) },
      { title: "Known up to", cell: (row) => (row.known_until ? inMoment(Date.parse(row.known_until)) : "unknown") },
      { title: "Result", cell: (row) => visible(row.text) },
    ])} />`;
}

/** @param {{ flow: string, id: string }} props */
function Evidence({ flow, id }) {
  const [problem, setProblem] = useState(/** @type {unknown} */ (null));
  const save = (/** @type {"json" | "md"} */ kind) => {
    setProblem(null);
    download(flowPath(flow, `/switch/evidence.${kind}`), `evidence-${flow}-${id}.${kind}`).catch(setProblem);
  };
  return html`<div class="buttons left">
    <button type="button" onClick=${() => save("json")}>Evidence as JSON</button>
    <button type="button" onClick=${() => save("md")}>Evidence as Markdown</button>
    ${problem !== null && html`<${ProblemNote} problem=${problem} />`}
  </div>`;
}
