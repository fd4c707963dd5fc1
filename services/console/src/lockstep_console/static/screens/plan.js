// What Lockstep would change on both clusters by the file, as a diff.

import { address, flowPath, request, saveJson } from "../lib/api.js";
import { asSentence, capitalized, inBytes, inCount, inNumber, inText, inTime, inWords, visible } from "../lib/format.js";
import { html, useState } from "../lib/preact.js";
import { EventParser } from "../lib/sse.js";
import { Age, Code, Empty, ProblemNote, Section, State, useResource } from "../parts/basics.js";
import { Table } from "../parts/table.js";

const SIGNS = { create: "+", alter: "~", delete: "-" };

/** Lines that are shown at first: a plan may have thousands. */
const SHOWN = 500;

/** @param {{ flow: string }} props */
export function Plan({ flow }) {
  const [progress, setProgress] = useState("");
  const plan = useResource(`${flow} plan`, (cancel) => readPlan(flow, cancel, setProgress));
  /** @type {Api.Plan | null} */
  const value = plan.value;
  const mine = value?.flows.find((part) => part.flow === flow);
  return html`<div>
    <div class="list-head">
      ${value && html`<p class="lead">${visible(asSentence(summaryText(value)))}</p>`}
      ${value && html`<p class="muted">made <${Age} ms=${value.made_at_ms} /></p>`}
      <button type="button" disabled=${plan.loading} onClick=${plan.reload}>${plan.loading ? "Reading both clusters ..." : "Make it anew"}</button>
      ${value && html`<button type="button" onClick=${() => saveJson(value, `plan-${flow}.json`)}>Download</button>`}
    </div>
    ${plan.loading && html`<p class="muted" role="status">${progress ? visible(progress) : "Both clusters are read. This can take a minute."}</p>`}
    ${plan.problem !== null && html`<${ProblemNote} problem=${plan.problem} retry=${plan.reload} />`}
    ${mine && html`<${FlowPlan} plan=${mine} />`}
  </div>`;
}

/**
 * Read a plan, with the words for what is read meanwhile.
 *
 * @param {string} flow
 * @param {AbortSignal} cancel
 * @param {(text: string) => void} onProgress
 * @returns {Promise<Api.Plan>}
 */
async function readPlan(flow, cancel, onProgress) {
  onProgress("");
  const response = await request(address(flowPath(flow, "/plan")), {
    headers: { Accept: "text/event-stream" },
    signal: cancel,
  });
  if (!(response.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) return response.json();
  const parser = new EventParser();
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: "" };
    for (const { event, data } of parser.feed(value ?? "")) {
      const body = JSON.parse(data);
      if (event === "plan") return body;
      if (event === "error" || event === "problem") throw new Error(body.sentence ?? body.error?.sentence ?? inText(body));
      onProgress(typeof body === "string" ? body : (body.text ?? body.sentence ?? inText(body)));
    }
    if (done) throw new Error("The console ended the plan before it was made.");
  }
}

/** @param {Api.Plan} plan */
function summaryText({ summary }) {
  const parts = [
    `${inNumber(summary.create)} to create, ${inNumber(summary.alter)} to alter, ${inNumber(summary.delete)} to delete`,
    summary.records === 0 ? "nothing to copy" : `${inBytes(summary.bytes)} to copy in ${summary.seconds === null ? "a time that is unknown" : inTime(summary.seconds * 1_000)}`,
    inCount(summary.hazards, "hazard"),
    summary.notes ? inCount(summary.notes, "note") : "",
    summary.rights ? inCount(summary.rights, "missing right") : "",
  ];
  return parts.filter(Boolean).join("; ");
}

/** @param {{ plan: Api.FlowPlan }} props */
function FlowPlan({ plan }) {
  return html`<div>
    ${plan.hazards.length > 0 && html`<${Section} title="Hazards"><${Hazards} hazards=${plan.hazards} /><//>`}
    ${plan.rights.length > 0 &&
    html`<${Section} title="Missing rights">
      <ul class="plain">
        ${plan.rights.map((right) => html`<li key=${`${right.cluster} ${right.lacks}`}>
          <${State} word=${right.cluster} tone="note" /> ${visible(asSentence(right.lacks))} ${right.command && html`<pre tabindex="0">${visible(right.command)}</pre>`}
        </li>`)}
      </ul>
    <//>`}
    <${Section} title="Changes"><${Changes} changes=${plan.changes} /><//>
    ${plan.copy.topics.length > 0 && html`<${Section} title="Copy"><${Copy} copy=${plan.copy} /><//>`}
    <${Fates} groups=${plan.groups} />
    ${plan.remarks.length > 0 && html`<${Section} title="Remarks"><ul class="plain">${plan.remarks.map((text) => html`<li key=${text}>${visible(asSentence(text))}</li>`)}</ul><//>`}
  </div>`;
}

/** @param {{ changes: Api.PlannedChange[] }} props */
function Changes({ changes }) {
  const [shown, setShown] = useState(SHOWN);
  if (!changes.length) return html`<${Empty}>None: topics, configs, ACLs and groups are as they should be.<//>`;
  return html`<div>
    <ul class="diff" tabindex="0" aria-label="Changes">
      ${changes.slice(0, shown).map(
        (change, index) =>
          html`<li key=${index} class=${change.action}>
            <span class="sign"><span aria-hidden="true">${SIGNS[change.action]}</span><span class="hidden">${change.action}: </span></span>
            <span>${inWords(change.kind)} <strong>${visible(change.name)}</strong> on ${visible(change.cluster)}${visible(changeText(change))}</span>
          </li>`,
      )}
    </ul>
    ${changes.length > shown && html`<button type="button" onClick=${() => setShown(shown + SHOWN)}>Show more of ${inNumber(changes.length)}</button>`}
  </div>`;
}

/** @param {Api.PlannedChange} change */
function changeText(change) {
  const as = change.source ? `, as ${change.source} has` : "";
  switch (change.kind) {
    case "topic":
    case "control-topic": {
      const factor = change.replication_factor < 0 ? "the brokers' replication factor" : `replication factor ${change.replication_factor}`;
      const configs = Object.entries(change.configs).map(([key, value]) => `${key}=${value}`);
      return `: ${[inCount(change.partitions, "partition"), factor, ...configs, change.source && `from ${change.source}`].filter(Boolean).join(", ")}`;
    }
    case "partitions":
      return `: ${change.before} -> ${change.after}${as}`;
    case "config":
      return `: ${change.key} ${change.before ?? "unset"} -> ${change.after ?? "the brokers' default"}${as}`;
    case "group":
      return ": with its offsets, translated";
    default:
      return "";
  }
}

/** @param {{ hazards: Api.FlowPlan["hazards"] }} props */
function Hazards({ hazards }) {
  return html`<ul class="plain">
    ${hazards.map(
      (hazard) =>
        html`<li key=${hazard.code}>
          <${State} word=${hazard.severity} tone=${hazard.severity === "error" ? "bad" : "note"} />
          ${" "}<${Code} code=${hazard.code} /> <strong>${hazard.title}</strong>
          <ul>${hazard.details.map((text) => html`<li key=${text}>${visible(asSentence(text))}</li>`)}</ul>
          ${hazard.fix && html`<p>${visible(asSentence(capitalized(hazard.fix)))}</p>`}
        </li>`,
    )}
  </ul>`;
}

/** @param {{ copy: Api.FlowPlan["copy"] }} props */
function Copy({ copy }) {
  const rows = copy.topics.toSorted((one, other) => (other.bytes ?? other.records ?? 0) - (one.bytes ?? one.records ?? 0));
  return html`<${Table} label="What is copied, the largest first" rows=${rows.slice(0, SHOWN)} keyOf=${(/** @type {any} */ row) => row.topic}
    columns=${/** @type {import("../parts/table.js").Column<Api.FlowPlan["copy"]["topics"][number]>[]} */ ([
      { title: "Topic", name: true, cell: (row) => visible(row.topic) },
      { title: "Remote topic", cell: (row) => visible(row.remote) },
      { title: "Records", number: true, cell: (row) => inNumber(row.records) },
      { title: "Bytes", number: true, cell: (row) => inBytes(row.bytes) },
      { title: "Time", number: true, cell: (row) => (row.seconds === null ? "unknown" : inTime(row.seconds * 1_000)) },
    ])} />`;
}

/** @param {{ groups: Api.FlowPlan["groups"] }} props */
function Fates({ groups }) {
  if (!groups.length) return null;
  return html`<${Section} title="Groups">
    <ul class="plain">
      ${groups.slice(0, SHOWN).map((group) => html`<li key=${group.group}><strong>${visible(group.group)}</strong>: ${inWords(group.fate)}${group.reason && `, ${visible(group.reason)}`}</li>`)}
    </ul>
  <//>`;
}
