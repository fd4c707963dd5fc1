// The records of a flow's control topics, decoded: Lockstep's own, and MM2's binary ones.

import { flowPath, get, saveJson } from "../lib/api.js";
import { inMoment, inNumber, visible } from "../lib/format.js";
import { html, useId, useState } from "../lib/preact.js";
import { route } from "../lib/route.js";
import { Age, Details, Empty, Pending, ProblemNote, UnknownNote, useAttempt, useResource } from "../parts/basics.js";
import { Table } from "../parts/table.js";

/** The topics by the role that they have in a flow. */
const ROLES = /** @type {const} */ ([
  ["state", "State rows: what is so now"],
  ["events", "Events: what happened"],
  ["commands", "Commands: what operators asked for"],
  ["checkpoints", "Checkpoints of groups (MirrorMaker 2's)"],
  ["offset-syncs", "Offset syncs (MirrorMaker 2's)"],
  ["heartbeats", "Heartbeats (MirrorMaker 2's)"],
  ["offsets", "Connect's offsets (MirrorMaker 2's)"],
  ["quarantine", "Records that the target refused"],
]);

/** @param {{ flow: string }} props */
export function Records({ flow }) {
  const id = useId();
  const [topic, setTopic] = useState(route.value.query.topic ?? "state");
  const [from, setFrom] = useState(route.value.query.from ?? "end");
  const [partition, setPartition] = useState("");
  const [limit, setLimit] = useState(100);
  const query = { topic, from, partition, limit };
  const body = useResource(`${flow} records ${JSON.stringify(query)}`, (cancel) => get(flowPath(flow, "/records"), query, cancel));
  /** @type {Api.Records | null} */
  const value = body.value;
  const ends = Object.entries(value?.ends ?? {});
  const [earlier, setEarlier] = useState(/** @type {{ of: Api.Records | null, records: Api.EventLine[], older: number | null }} */ ({ of: null, records: [], older: null }));
  const { problem, attempt } = useAttempt();
  // What was read before belongs to one answer: a new one begins anew.
  const { records: before, older } = earlier.of === value && value ? earlier : { records: [], older: value?.older ?? null };
  const records = [...(value?.records ?? []), ...before];
  const readEarlier = async () => {
    const more = await get(flowPath(flow, "/records"), { ...query, partition: records.at(-1)?.partition ?? 0, before: older });
    setEarlier({ of: value, records: [...before, ...more.records], older: more.older });
  };
  return html`<div>
    <div class="list-head">
      <div>
        <label for=${`${id}t`}>Topic</label>
        <select id=${`${id}t`} value=${topic} onChange=${(/** @type {any} */ event) => setTopic(event.currentTarget.value)}>
          ${ROLES.map(([role, name]) => html`<option key=${role} value=${role}>${name}</option>`)}
        </select>
      </div>
      <div>
        <label for=${`${id}f`}>Read from</label>
        <select id=${`${id}f`} value=${from} onChange=${(/** @type {any} */ event) => setFrom(event.currentTarget.value)}>
          <option value="end">its end</option>
          <option value="beginning">its beginning</option>
        </select>
      </div>
      <div>
        <label for=${`${id}p`}>Partition</label>
        <input id=${`${id}p`} type="number" min="0" value=${partition} placeholder="all" onChange=${(/** @type {any} */ event) => setPartition(event.currentTarget.value)} />
      </div>
      <div>
        <label for=${`${id}l`}>Records</label>
        <select id=${`${id}l`} value=${limit} onChange=${(/** @type {any} */ event) => setLimit(Number(event.currentTarget.value))}>
          ${[100, 300, 1000].map((count) => html`<option key=${count} value=${count}>${count}</option>`)}
        </select>
      </div>
      <button type="button" disabled=${body.loading} onClick=${body.reload}>Read again</button>
      ${value && html`<button type="button" onClick=${() => saveJson(value, `${topic}-${flow}.json`)}>Download</button>`}
    </div>
    <${Pending} resource=${body} what="the records" />
    ${value?.unknown && html`<${UnknownNote} reason=${value.unknown} />`}
    ${value &&
    html`<p class="muted">
      Read <${Age} ms=${value.at_ms} />: ${visible(value.topic)} on ${visible(value.cluster)}${ends.length > 0 && `. Ends: ${ends.map(([number, end]) => `${number}: ${inNumber(end)}`).join(", ")}`}
    </p>`}
    ${value && !value.unknown && !value.records.length && html`<${Empty}>The topic has no record there.<//>`}
    ${records.length > 0 && html`<${RecordTable} records=${records} />`}
    ${problem !== null && html`<${ProblemNote} problem=${problem} />`}
    ${older !== null && from === "end" && html`<p><button type="button" onClick=${() => attempt(readEarlier)}>Show earlier ones</button></p>`}
  </div>`;
}

/** Characters of a record in its line. Its values are below it. */
const LONGEST = 400;

/** @param {string} text */
function shortened(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}

/** @param {{ records: Api.EventLine[] }} props */
function RecordTable({ records }) {
  return html`<${Table} label="Records of the topic" rows=${records}
    keyOf=${(/** @type {Api.EventLine} */ row) => `${row.partition}-${row.offset}`}
    columns=${/** @type {import("../parts/table.js").Column<Api.EventLine>[]} */ ([
      { title: "Offset", name: true, cell: (row) => `${row.partition ?? "?"}-${row.offset ?? "?"}` },
      { title: "Time", cell: (row) => html`<span class="moment">${inMoment(row.timestamp_ms ?? row.at_ms)}</span>` },
      { title: "Kind", cell: (row) => visible(row.kind) },
      { title: "About", cell: (row) => visible(row.about) },
      { title: "Record", cell: (row) => html`<span class="wide">${shortened(visible(row.text))}</span><${Details} value=${row} />` },
    ])} />`;
}
