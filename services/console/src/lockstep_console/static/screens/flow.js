// One flow: lag with its trend, throughput, decisions, services and slots with the reason of each.

import { flowPath, get } from "../lib/api.js";
import { FLOW_VERBS, commandAction } from "../lib/actions.js";
import { asSentence, capitalized, inBytes, inClock, inNumber, inRate, inTime, isKnown, visible } from "../lib/format.js";
import { html, useEffect, useMemo, useState } from "../lib/preact.js";
import { flowHref } from "../lib/route.js";
import { flowSignal, onChange, onChanges, session } from "../lib/store.js";
import { flowTone, readinessTone } from "../lib/tone.js";
import { meanOf, trendOf, withTail, worstOf } from "../lib/trend.js";
import { ActionButton, ReadOnlyNote } from "../parts/action_dialog.js";
import { Code, Empty, Freshness, Lasting, Pending, Reason, Section, State, Text, useResource, useThrottled } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { Decisions } from "../parts/decisions.js";
import { RecentCommands } from "../parts/recent_commands.js";
import { Table } from "../parts/table.js";
import { RecoveryPoint } from "./overview.js";

/** @param {{ flow: string }} props */
export function Flow({ flow }) {
  const status = flowSignal(flow).value;
  return html`<div>
    <${Summary} status=${status} />
    ${(status?.decisions ?? []).length > 0 &&
    html`<${Section} title="Needs a decision"><${Decisions} list=${status?.decisions ?? []} leftOut=${status?.decisions_left_out ?? 0} /><//>`}
    ${(status?.troubles ?? []).length > 0 && html`<${Troubles} troubles=${status?.troubles ?? []} leftOut=${status?.troubles_left_out ?? 0} />`}
    <${LagCharts} flow=${flow} />
    <${SwitchReadiness} status=${status} flow=${flow} />
    <${Work} flow=${flow} status=${status} />
    <${FlowActions} flow=${flow} />
    <${RecentCommands} flow=${flow} />
  </div>`;
}

/** @param {{ status: Api.Flow | null }} props */
function Summary({ status }) {
  const { tone, word } = flowTone(status);
  return html`<div>
    <p class="lead">
      <${State} word=${word} tone=${tone} />
      ${" "}<${Text} text=${asSentence(status?.sentence ?? (status?.unknown ? "" : "It is not read yet"))} />
      ${" "}<${Freshness} flow=${status} />
    </p>
    ${status && html`<${RecoveryPoint} flow=${status} />`}
  </div>`;
}

/** @param {{ leftOut: number }} props */
function LeftOut({ leftOut }) {
  return leftOut > 0 && html`<p class="muted">and ${leftOut} more</p>`;
}

/** @param {{ troubles: Api.Trouble[], leftOut: number }} props */
function Troubles({ troubles, leftOut }) {
  return html`<${Section} title="In trouble">
    <ul class="plain">
      ${troubles.map(
        (trouble) =>
          html`<li key=${trouble.what}>
            <${State} word=${trouble.what} tone="bad" /> <${Reason} text=${trouble.why} code=${trouble.code} />
          </li>`,
      )}
    </ul>
    <${LeftOut} leftOut=${leftOut} />
  <//>`;
}

const HOURS = [1, 6, 24];

/** Values of 5 minutes, one each 10 s: they are compared with those of the 10 minutes before. */
const LATE = 30;

/** @param {{ flow: string }} props */
function LagCharts({ flow }) {
  const [hours, setHours] = useState(24);
  const lag = useResource(`${flow} lag`, (cancel) => get(flowPath(flow, "/lag"), { hours: 24 }, cancel));
  const [value, setValue] = useState(/** @type {Api.Lag | null} */ (null));
  useEffect(() => setValue(lag.value), [lag.value]);
  useEffect(() => {
    const goOn = (/** @type {Api.Lag & { flow: string }} */ tail) => {
      if (tail.flow === flow) setValue((before) => before && withTail(before, tail));
    };
    return onChanges({ lag: goOn, hello: lag.reload }); // what came meanwhile is not sent again
  }, [flow]);
  const lines = useMemo(() => (value ? linesOf(value, hours) : []), [value, hours]);
  const range = html`<div class="choice" role="group" aria-label="Time that is shown">
    ${HOURS.map(
      (count) =>
        html`<button type="button" key=${count} aria-pressed=${count === hours} onClick=${() => setHours(count)}>${count} h</button>`,
    )}
  </div>`;
  return html`<${Section} title="Lag and throughput" extra=${range}>
    <${Pending} resource=${lag} what="the history of the lag" />
    ${value && html`<${Trend} lag=${value} />`}
    <div class="charts">${lines.map((line) => html`<${Chart} key=${line.title} line=${line} />`)}</div>
    ${value && value.worst.length > 0 && html`<${WorstPartitions} worst=${value.worst} />`}
  <//>`;
}

/** @param {{ lag: Api.Lag }} props */
function Trend({ lag }) {
  const trend = trendOf(lag.lag_ms, LATE, 500);
  const words = { grows: "it grows", falls: "it falls", steady: "it is steady", unknown: "its trend is unknown" }[trend];
  const tone = /** @type {const} */ ({ grows: "bad", falls: "good", steady: "good", unknown: "unknown" })[trend];
  const mean = meanOf(lag.lag_ms.slice(-LATE));
  return html`<p><${State} word=${`Lag of the last 5 min: ${mean === null ? "unknown" : inTime(mean)} on average, and ${words}`} tone=${tone} /></p>`;
}

/**
 * @param {Api.Lag} lag
 * @param {number} hours
 * @returns {import("../parts/chart.js").ChartLine[]}
 */
function linesOf(lag, hours) {
  const count = Math.min(lag.lag_ms.length, Math.round((hours * 3_600) / lag.step_s));
  const skipped = lag.lag_ms.length - count;
  const begins = lag.begins_ms / 1_000 + skipped * lag.step_s;
  const times = Array.from({ length: count }, (_, index) => begins + index * lag.step_s);
  /**
   * @param {string} title
   * @param {number} least
   * @param {(number | null)[]} values
   * @param {(value: number | null) => string} text
   */
  const line = (title, least, values, text) => {
    const part = values.slice(skipped);
    const worst = worstOf(part);
    const unknown = part.filter((value) => !isKnown(value)).length * lag.step_s;
    const most = worst ? `most ${text(worst.value)} at ${inClock((times[worst.index] ?? 0) * 1_000)}` : "nothing is known";
    const summary = `${most}${unknown && worst ? `, unknown for ${inTime(unknown * 1_000)}` : ""}`;
    return { title, least, times, values: part, text, summary };
  };
  return [
    line("Lag in time", 1_000, lag.lag_ms, inTime),
    line("Lag in records", 10, lag.lag_records, inNumber),
    line("Records a second", 10, lag.records_per_s, inRate),
  ];
}

/** @param {{ worst: Api.Lag["worst"] }} props */
function WorstPartitions({ worst }) {
  const rows = worst
    .map((line) => ({ line, worst: worstOf(line.lag_ms) }))
    .sort((one, other) => (other.worst?.value ?? 0) - (one.worst?.value ?? 0));
  return html`<h3>Partitions with the worst lag of 24 h</h3>
    <${Table} label="Partitions with the worst lag of 24 h" rows=${rows}
    keyOf=${(/** @type {any} */ row) => `${row.line.topic}-${row.line.partition}`}
    columns=${/** @type {import("../parts/table.js").Column<any>[]} */ ([
      { title: "Partition", name: true, cell: (row) => visible(`${row.line.topic}-${row.line.partition}`) },
      { title: "Worst lag", number: true, cell: (row) => (row.worst ? inTime(row.worst.value) : "unknown") },
      {
        title: "At",
        number: true,
        cell: (row) => (row.worst ? inClock(row.line.begins_ms + row.worst.index * row.line.step_s * 1_000) : ""),
      },
    ])} />`;
}

/** @param {{ status: Api.Flow | null, flow: string }} props */
function SwitchReadiness({ status, flow }) {
  const { tone, word } = readinessTone(status);
  const blockers = status?.switch_blockers ?? [];
  return html`<${Section} title="Ready to switch" extra=${html`<a href=${flowHref(flow, "switch")}>Open Switch</a>`}>
    <p><${State} word=${word} tone=${tone} /></p>
    ${blockers.length > 0 &&
    html`<ul class="plain">
      ${blockers.map(
        (blocker) =>
          html`<li key=${`${blocker.reason} ${blocker.subject}`}>
            <${State} word=${blocker.blocks ? "prevents it" : "note"} tone=${blocker.blocks ? "bad" : "note"} />
            ${" "}${visible(asSentence(capitalized(blocker.text)))} <${Code} code=${blocker.reason} />
          </li>`,
      )}
    </ul>`}
    <${LeftOut} leftOut=${status?.switch_blockers_left_out ?? 0} />
  <//>`;
}

/** @param {{ flow: string, status: Api.Flow | null }} props */
function Work({ flow, status }) {
  const body = useResource(`${flow} work`, (cancel) => get(flowPath(flow), { sections: "services,slots" }, cancel));
  const refresh = useThrottled(body.reload, 2_000);
  useEffect(() => onChange("status", (data) => data.flow === flow && refresh()), [flow]);
  /** @type {Api.Flow | null} */
  const value = body.value;
  return html`<div>
    <${Section} title="Services">
      <${Pending} resource=${body} what="the services" />
      ${value?.services && html`<${Services} services=${value.services} flow=${flow} />`}
    <//>
    <${Section} title="Slots">
      ${value?.slots && html`<${Slots} slots=${value.slots} flow=${flow} />`}
      ${value?.slots?.length === 0 && html`<${Empty}>No slot has started.<//>`}
    <//>
    ${(status?.held_back ?? []).length > 0 &&
    html`<${Section} title="Paused or stopped">
      <ul class="plain">
        ${(status?.held_back ?? []).map(
          (part) =>
            html`<li key=${part.scope}>
              <${State} word=${`${part.scope} is ${part.wanted}`} tone="rest" />
              ${" "}<${ActionButton} action=${commandAction(flow, "resume", part.scope)} isInRow />
            </li>`,
        )}
      </ul>
    <//>`}
  </div>`;
}

/** @param {{ services: Api.Service[], flow: string }} props */
function Services({ services, flow }) {
  return html`<${Table} label="Services of the flow" rows=${services} keyOf=${(/** @type {Api.Service} */ row) => row.service}
    columns=${/** @type {import("../parts/table.js").Column<Api.Service>[]} */ ([
      { title: "Service", name: true, cell: (row) => row.service },
      { title: "Wanted", cell: (row) => html`<${State} word=${row.wanted} />` },
      { title: "Replicas", number: true, cell: (row) => html`<${Replicas} count=${row.replicas} />` },
      { title: "Acting", cell: (row) => html`<${Acting} row=${row} />` },
      { title: "Reason", cell: (row) => html`<${Reason} text=${row.trouble} code=${row.cause?.code} />` },
      { title: "Action", cell: (row) => html`<${ActionButton} action=${commandAction(flow, "restart", `connector:${row.connector}`)} isInRow />` },
    ])} />`;
}

/** @param {{ count: number | null }} props */
function Replicas({ count }) {
  if (count === null) return html`<${State} word="unknown" />`;
  return count === 0 ? html`<${State} word="none" tone="bad" />` : inNumber(count);
}

/** @param {{ row: Api.Service }} props */
function Acting({ row }) {
  if (!row.leaders.length || row.replicas === 0) return html`<span class="muted">nobody</span>`;
  const names = [...new Set(row.leaders.map((leader) => leader.instance))].join(", ");
  const sinceMs = Math.max(...row.leaders.map((leader) => leader.since_ms));
  return html`${visible(names)}, <span class="muted"><${Lasting} ms=${sinceMs} /></span>`;
}

/** @param {{ slots: Api.Slot[], flow: string }} props */
function Slots({ slots, flow }) {
  return html`<${Table} label="Slots of the data plane" rows=${slots} keyOf=${(/** @type {Api.Slot} */ row) => String(row.slot)}
    columns=${/** @type {import("../parts/table.js").Column<Api.Slot>[]} */ ([
      { title: "Slot", name: true, cell: (row) => `slot ${row.slot}` },
      { title: "State", cell: (row) => html`<${State} word=${row.phase} />` },
      { title: "Wanted", cell: (row) => html`<${State} word=${row.wanted} />` },
      { title: "Partitions", number: true, cell: (row) => inNumber(row.partitions) },
      { title: "Resting", number: true, cell: (row) => inNumber(row.resting) },
      { title: "In memory", number: true, cell: (row) => (row.phase === "started" ? inBytes(row.held_bytes) : "") },
      { title: "Reason", cell: (row) => html`<${Reason} text=${row.trouble} code=${row.cause?.code} />` },
      { title: "Action", cell: (row) => html`<${ActionButton} action=${commandAction(flow, "restart", `slot:${row.slot}`)} isInRow />` },
    ])} />`;
}

/** @param {{ flow: string }} props */
function FlowActions({ flow }) {
  return html`<${Section} title=${`Act on the whole flow`}>
    ${session.value?.may_act ? "" : html`<${ReadOnlyNote} />`}
    <div class="buttons left">
      ${FLOW_VERBS.map((verb) => html`<${ActionButton} key=${verb} action=${commandAction(flow, verb)} />`)}
      <a class="button" href=${flowHref(flow, "verify")}>Verify ...</a>
      <a class="button" href=${flowHref(flow, "switch")}>Switch ...</a>
    </div>
  <//>`;
}
