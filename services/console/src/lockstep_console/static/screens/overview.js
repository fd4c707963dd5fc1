// Every flow as a sentence, what waits for a decision on top, and a drawing of clusters and flows.

import { asSentence, inMoment, inTime, isKnown } from "../lib/format.js";
import { html, useState } from "../lib/preact.js";
import { flowHref } from "../lib/route.js";
import { decisions, decisionsLeftOut, flowNames, flowSignal } from "../lib/store.js";
import { flowTone, readinessTone } from "../lib/tone.js";
import { Age, Empty, Figures, Freshness, Section, State, Text } from "../parts/basics.js";
import { Decisions } from "../parts/decisions.js";
import { FlowMap } from "../parts/flow_map.js";

/** From this number of flows on there is a filter. */
const FILTERED_FROM = 12;

export function Overview() {
  const names = flowNames.value;
  const [filter, setFilter] = useState("");
  const shown = names.filter((name) => name.toLowerCase().includes(filter.toLowerCase()));
  return html`<div>
    <h1 tabindex="-1">Overview</h1>
    <${Waiting} />
    <${Section} title="Flows" extra=${names.length >= FILTERED_FROM && html`<${FlowFilter} onChange=${setFilter} />`}>
      <ul class="cards">
        ${shown.map((name) => html`<${FlowLine} key=${name} name=${name} />`)}
      </ul>
      ${!shown.length && html`<${Empty}>${names.length ? "No flow has such a name." : "The file has no flow."}<//>`}
    <//>
    ${names.length > 0 && html`<${Section} title="Clusters and flows"><${FlowMap} names=${names} /><//>`}
  </div>`;
}

/** @param {{ onChange: (text: string) => void }} props */
function FlowFilter({ onChange }) {
  return html`<label>
    <span class="hidden">Filter flows</span>
    <input type="search" placeholder="Filter flows" onInput=${(/** @type {any} */ event) => onChange(event.currentTarget.value)} />
  </label>`;
}

function Waiting() {
  const waiting = decisions.value;
  return html`<${Section} title="Needs a decision">
    ${waiting.length ? html`<${Decisions} list=${waiting} leftOut=${decisionsLeftOut.value} showsFlow />` : html`<${NothingWaits} />`}
  <//>`;
}

/** A flow that cannot be read may have decisions too: then nobody knows. */
function NothingWaits() {
  const unread = flowNames.value.filter((name) => flowSignal(name).value?.unknown);
  if (!unread.length) return html`<p><${State} word="Nothing waits for a decision" tone="good" /></p>`;
  return html`<p>
    <${State} word=${`Unknown for ${unread.join(", ")}. Nothing else waits for a decision`} tone="unknown" />
  </p>`;
}

/** @param {{ name: string }} props */
function FlowLine({ name }) {
  const flow = flowSignal(name).value;
  const { tone, word } = flowTone(flow);
  const readiness = readinessTone(flow);
  const unknown = flow?.unknown;
  return html`<li class=${`card flow-line ${tone}`}>
    <div class="section-head">
      <h3><a href=${flowHref(name)}><${Text} text=${name} /></a></h3>
      <${State} word=${word} tone=${tone} />
      <${State} word=${readiness.word} tone=${readiness.tone} />
      <${Freshness} flow=${flow} />
    </div>
    <p><${Text} text=${asSentence(unknown || flow?.sentence || "It is not read yet")} /></p>
    ${flow && html`<${RecoveryPoint} flow=${flow} />`}
  </li>`;
}

/**
 * What would be lost if the source were gone now, and the worst of 24 h.
 *
 * @param {{ flow: Api.Flow }} props
 */
export function RecoveryPoint({ flow }) {
  const { history } = flow;
  const worst = history && isKnown(history.worst_ms) ? inTime(history.worst_ms) : "unknown";
  return html`<${Figures} figures=${[
    { name: "Recovery point now", value: flow.unknown ? "unknown" : inTime(flow.lag_ms), under: recordsBehind(flow) },
    { name: "Worst of 24 h", value: worst, under: historyWords(history) },
    { name: "Verified up to", value: verifiedText(flow), under: verifiedWords(flow) },
  ]} />`;
}

/** @param {Api.Flow} flow */
function recordsBehind(flow) {
  if (flow.unknown) return "";
  if (isKnown(flow.lag_records)) return `${flow.lag_records.toLocaleString("en-US")} records behind`;
  return `of ${flow.lag_unknown ?? "some"} partitions it is unknown`;
}

/** @param {Api.History | null | undefined} history */
function historyWords(history) {
  if (!history || !isKnown(history.worst_at_ms)) return "nothing is known of the last 24 h";
  const day = 86_400;
  const known = history.known_s < day - 600 ? `, known for ${inTime(history.known_s * 1000)} of it` : "";
  return `at ${inMoment(history.worst_at_ms)}${known}`;
}

/** @param {Api.Flow} flow */
function verifiedText(flow) {
  return flow.unknown || flow.verified_until_ms ? html`<${Age} ms=${flow.verified_until_ms} />` : "not yet";
}

/** @param {Api.Flow} flow */
function verifiedWords(flow) {
  if (flow.unknown) return "";
  return flow.verified_until_ms ? inMoment(flow.verified_until_ms) : "not every partition was ever compared";
}
