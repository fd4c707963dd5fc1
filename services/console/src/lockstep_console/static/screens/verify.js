// How the copies compare with their source: a timeline of topics, differences, and what was not compared.

import { verifyAction } from "../lib/actions.js";
import { flowPath, get, saveJson } from "../lib/api.js";
import { asSentence, inBytes, inCount, inNumber, inOffset, inTime, inWords, visible } from "../lib/format.js";
import { html, useId, useState } from "../lib/preact.js";
import { codeHref } from "../lib/route.js";
import { ActionButton, ReadOnlyNote } from "../parts/action_dialog.js";
import { Age, Code, Empty, Pending, Section, State, UnknownNote, useChangedRows, useResource, useThrottled } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { Timeline } from "../parts/timeline.js";

/** @param {{ flow: string }} props */
export function Verify({ flow }) {
  const body = useResource(`${flow} verification`, (cancel) => get(flowPath(flow, "/verification"), {}, cancel));
  const refresh = useThrottled(body.reload, 2_000);
  const rows = useChangedRows(flow, (key) => /^verif/.test(key), refresh);
  /** @type {Api.Verification | null} */
  const value = body.value;
  return html`<div>
    <${VerifyForm} flow=${flow} onBegun=${refresh} />
    <${Pending} resource=${body} what="the verification" />
    ${value?.unknown && html`<${UnknownNote} reason=${value.unknown} />`}
    ${value && !value.unknown && html`<${Result} flow=${flow} body=${value} rows=${rows} />`}
  </div>`;
}

/** @param {{ flow: string, onBegun: () => void }} props */
function VerifyForm({ flow, onBegun }) {
  const id = useId();
  const [topics, setTopics] = useState("");
  const [again, setAgain] = useState(false);
  const names = topics.split(/[\s,]+/).filter(Boolean);
  return html`<${Section} title="Compare now">
    <${ReadOnlyNote} />
    <p class="field">
      <label for=${id}>Only these topics</label>
      <input id=${id} type="text" value=${topics} spellcheck=${false} onInput=${(/** @type {any} */ event) => setTopics(event.currentTarget.value)} />
      <span class="muted">Names on the source, separated by commas. Empty: all.</span>
    </p>
    <label class="check">
      <input type="checkbox" checked=${again} onChange=${(/** @type {any} */ event) => setAgain(event.currentTarget.checked)} />
      From the beginning, also what is verified
    </label>
    <div class="buttons left">
      <${ActionButton} action=${verifyAction(flow, { topics: names, ...(again ? { again } : {}) })} label="Verify ..." onSent=${onBegun} />
    </div>
  <//>`;
}

/** @param {Api.VerifiedTopic} topic */
function differencesOf(topic) {
  return topic.differ + topic.missing + topic.extra + topic.beyond;
}

/**
 * Return how far the comparison of a topic is, in words. It runs only while a request for it does. Pure.
 *
 * @param {Api.VerifiedTopic} topic
 * @param {Api.Verification["request"]} [request] The last request.
 */
export function topicState(topic, request) {
  if (differencesOf(topic)) return "differs";
  const isWanted = request?.phase === "running" && (!request.topics.length || request.topics.includes(topic.topic));
  if (topic.behind && isWanted) return topic.records ? "running" : "waiting";
  if (topic.not_verified) return "not all compared";
  if (topic.records) return "done";
  return topic.behind ? "not compared" : "nothing to compare";
}

/**
 * Return what the comparison of a flow has found, as a tone and a word. Pure.
 *
 * @param {Api.Verification} body
 * @returns {{ tone: import("../lib/tone.js").Tone, word: string }}
 */
export function resultOf(body) {
  const differences = body.topics.reduce((sum, topic) => sum + differencesOf(topic), 0);
  if (differences) return { tone: "bad", word: inCount(differences, "difference") };
  if (body.equal) return { tone: "good", word: "equal" };
  if (!body.topics.some((topic) => topic.records)) return { tone: "unknown", word: "not compared" };
  const isLeftOut = body.not_verified.length > 0 || Object.keys(body.waiting).length > 0;
  const states = body.topics.map((topic) => topicState(topic, body.request));
  if (isLeftOut || states.some((state) => state !== "done" && state !== "nothing to compare")) {
    return { tone: "unknown", word: "not all is compared" };
  }
  return { tone: "good", word: "equal, as far as it is compared" };
}

/** @param {{ flow: string, body: Api.Verification, rows: Record<string, unknown> }} props */
function Result({ flow, body, rows }) {
  const { tone, word } = resultOf(body);
  const isUnderWay = body.request?.phase === "running";
  const steps = body.topics.map((topic) => ({
    name: visible(topic.topic),
    state: topicState(topic, body.request),
    began: "",
    seconds: topic.records ? topic.seconds : null,
    text: topicText(topic),
    row: { topic, rows: Object.fromEntries(Object.entries(rows).filter(([key]) => key.startsWith(`verify/${topic.topic}/`))) },
  }));
  return html`<div>
    <${Section} title="Result" extra=${html`<button type="button" onClick=${() => saveJson(body, `verification-${flow}.json`)}>Evidence as JSON</button>`}>
      <p class="lead" aria-live="polite">
        <${State} word=${word} tone=${tone} />
        ${isUnderWay && html` <${State} word="a comparison is under way" tone="note" />`}
      </p>
      <p class="muted">
        ${body.verified_until_ms ? html`Verified up to <${Age} ms=${body.verified_until_ms} />` : "Not all partitions were ever compared"}${body.depth && `, by ${body.depth}`}.
      </p>
      ${body.topics.length ? html`<${Timeline} label="Topics that are compared" steps=${steps} />` : html`<${Empty}>Nothing was compared yet.<//>`}
    <//>
    ${body.differences.length > 0 && html`<${Section} title="First differences"><${Differences} list=${body.differences} /><//>`}
    ${body.not_verified.length > 0 && html`<${Section} title="Not compared"><${NotCompared} list=${body.not_verified} /><//>`}
    ${Object.keys(body.waiting).length > 0 &&
    html`<${Section} title="Waits">
      <ul class="plain">
        ${Object.entries(body.waiting).map(([name, reason]) => html`<li key=${name}><strong>${visible(name)}</strong>: ${visible(asSentence(reason))}</li>`)}
      </ul>
    <//>`}
  </div>`;
}

/** @param {Api.VerifiedTopic} topic */
function topicText(topic) {
  const parts = [
    topic.records ? `${inCount(topic.records, "record")} (${inBytes(topic.bytes)}) compared in ${inTime(topic.seconds * 1_000)}` : "",
    !topic.records ? "" : differencesOf(topic) ? `${inNumber(topic.differ)} differ, ${inNumber(topic.missing)} missing, ${inNumber(topic.extra)} extra, ${inNumber(topic.beyond)} beyond the copy` : "no difference",
    topic.behind ? `${inCount(topic.behind, "source offset")} not compared yet` : "",
    topic.not_verified ? `${inCount(topic.not_verified, "record")} could not be compared` : "",
  ];
  return parts.filter(Boolean).join(", ");
}

/** @param {{ list: Api.Difference[] }} props */
function Differences({ list }) {
  return html`<${Table} label="First differences" rows=${list}
    keyOf=${(/** @type {Api.Difference} */ row) => `${row.topic}-${row.partition} ${row.kind} ${row.source_offset} ${row.target_offset}`}
    columns=${/** @type {import("../parts/table.js").Column<Api.Difference>[]} */ ([
      { title: "Partition", name: true, cell: (row) => visible(`${row.topic}-${row.partition}`) },
      { title: "Kind", cell: (row) => row.kind.split("+").map((kind) => html`<a class="quiet" key=${kind} href=${codeHref(kind)} title="What it means"><${State} word=${inWords(kind)} tone="bad" /></a> `) },
      { title: "Source offset", number: true, cell: (row) => inOffset(row.source_offset) },
      { title: "Target offset", number: true, cell: (row) => inOffset(row.target_offset) },
    ])} />`;
}

/** @param {{ list: Api.Verification["not_verified"] }} props */
function NotCompared({ list }) {
  return html`<${Table} label="Records that could not be compared" rows=${list}
    keyOf=${(/** @type {any} */ row) => `${row.topic}-${row.partition} ${row.reason} ${row.first}`}
    columns=${/** @type {import("../parts/table.js").Column<Api.Verification["not_verified"][number]>[]} */ ([
      { title: "Partition", name: true, cell: (row) => visible(`${row.topic}-${row.partition}`) },
      { title: "Reason", cell: (row) => html`<${Code} code=${row.reason} />` },
      { title: "First offset", number: true, cell: (row) => inOffset(row.first) },
      { title: "Last offset", number: true, cell: (row) => inOffset(row.last) },
      { title: "Records", number: true, cell: (row) => inNumber(row.records) },
    ])} />`;
}
