// Partitions, the ones that are furthest behind first. Only the rows in sight exist.

import { commandAction } from "../lib/actions.js";
import { flowPath } from "../lib/api.js";
import { ago, asSentence, capitalized, inMoment, inNumber, inOffset, inTime, isKnown, visible } from "../lib/format.js";
import { html, signal, useEffect, useId, useRef, useState } from "../lib/preact.js";
import { route } from "../lib/route.js";
import { now, onChanges } from "../lib/store.js";
import { ActionButton, ReadOnlyNote } from "../parts/action_dialog.js";
import { Code, Details, Empty, Facts, ProblemNote, State, UnknownNote, Loading } from "../parts/basics.js";
import { ListHead } from "../parts/list_head.js";
import { usePages } from "../parts/pages.js";
import { Spark } from "../parts/spark.js";
import { VirtualTable } from "../parts/table.js";

/** @typedef {{ by: string, order: "asc" | "desc" }} Order */

/** The partition whose details are shown, or null. */
const opened = signal(/** @type {{ flow: string, row: Api.Partition } | null} */ (null));

/** @type {import("../parts/table.js").Column<Api.Partition>[]} */
const FIGURES = [
  { title: "State", cell: (row) => html`<${State} word=${row.state} />` },
  { title: "Behind", number: true, sort: "lag", hint: "How long the oldest record waits that is not on the target", cell: (row) => lagText(row) },
  { title: "Records behind", number: true, cell: (row) => inNumber(row.lag_records) },
  { title: "15 min", cell: (row) => html`<${Spark} values=${row.spark} />` },
  { title: "Source end", number: true, cell: (row) => inOffset(row.source_end) },
  { title: "Copied to", number: true, cell: (row) => inOffset(copiedTo(row)) },
  { title: "Target end", number: true, cell: (row) => inOffset(row.target_end) },
  { title: "Verified up to", number: true, cell: (row) => verifiedText(row) },
  { title: "Reason", cell: (row) => html`<span title=${row.trouble || row.why}>${visible(row.trouble || row.why)}</span>` },
];

/** @param {{ flow: string }} props */
export function Partitions({ flow }) {
  const [filter, setFilter] = useState(route.value.query.filter ?? "");
  const [onlyTrouble, setOnlyTrouble] = useState(route.value.query.only === "trouble");
  const [order, setOrder] = useState(/** @type {Order} */ ({ by: "lag", order: "desc" }));
  /** @type {Record<string, string | number>} */
  const query = { sort: order.by, order: order.order, filter, only: onlyTrouble ? "trouble" : "" };
  const pages = usePages(flowPath(flow, "/partitions"), "partitions", query);
  const isPlain = order.by === "lag" && order.order === "desc" && !filter && !onlyTrouble;
  const live = useRef({ isPlain, pages });
  live.current = { isPlain, pages };
  useEffect(() => {
    return onChanges({
      worst: (data) => {
        if (data.flow === flow && live.current.isPlain) live.current.pages.putFirst(data.partitions);
      },
      status: (data) => data.flow === flow && live.current.pages.refresh(),
    });
  }, [flow]);

  const columns = [
    { title: "Partition", name: true, sort: "name", cell: (/** @type {Api.Partition} */ row) => html`<${PartitionName} flow=${flow} row=${row} />` },
    ...FIGURES,
  ];
  const sorting = {
    ...order,
    change: (/** @type {string} */ by) =>
      setOrder(by === order.by ? { by, order: order.order === "asc" ? "desc" : "asc" } : { by, order: by === "lag" ? "desc" : "asc" }),
  };
  return html`<div>
    <${ListHead} pages=${pages} noun="partition" filter=${filter} onFilter=${setFilter} onlyTrouble=${onlyTrouble} onOnlyTrouble=${setOnlyTrouble} />
    ${pages.problem !== null && html`<${ProblemNote} problem=${pages.problem} retry=${pages.reload} />`}
    ${pages.unknown && html`<${UnknownNote} reason=${pages.unknown} />`}
    ${!pages.isRead && !pages.problem && html`<${Loading} what="the partitions" />`}
    ${pages.isRead && !pages.matching && !pages.unknown && html`<${Empty}>${filter || onlyTrouble ? "No partition is like this." : "The flow has no partition."}<//>`}
    ${pages.matching > 0 &&
    html`<${VirtualTable} label="Partitions" columns=${columns} total=${pages.matching} rowAt=${pages.rowAt} onRange=${pages.want} sorting=${sorting} />`}
    <${PartitionDialog} />
  </div>`;
}

/** @param {{ flow: string, row: Api.Partition }} props */
function PartitionName({ flow, row }) {
  const name = visible(`${row.topic}-${row.partition}`);
  return html`<button type="button" class="link name" title=${name} onClick=${() => (opened.value = { flow, row })}>${name}</button>`;
}

/** @param {Api.Partition} row */
function lagText(row) {
  if (row.lag_records === 0) return "0 s";
  return inTime(row.lag_ms);
}

/** @param {Api.Partition} row */
function copiedTo(row) {
  return row.copied_to === undefined ? row.upstream : row.copied_to;
}

/** @param {Api.Partition} row */
function verifiedText(row) {
  const { verified_until_ms: untilMs } = row;
  if (!isKnown(untilMs) || untilMs <= 0) return html`<span class="muted">never</span>`;
  return html`<span title=${inMoment(untilMs)}>${ago(untilMs, now.peek())}</span>`;
}

function PartitionDialog() {
  const shown = opened.value;
  return shown && html`<${OpenPartition} key=${`${shown.row.topic}-${shown.row.partition}`} flow=${shown.flow} row=${shown.row} />`;
}

/** @param {{ flow: string, row: Api.Partition }} props */
function OpenPartition({ flow, row }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const title = useId();
  useEffect(() => {
    dialog.current?.showModal();
    return () => {
      opened.value = null; // a link in it may lead to another screen
    };
  }, []);
  const subject = `partition:${row.topic}-${row.partition}`;
  const close = () => dialog.current?.close();
  const reason = row.trouble || row.why;
  return html`<dialog ref=${dialog} aria-labelledby=${title} onClose=${() => (opened.value = null)}>
    <h2 id=${title}>${visible(`${row.topic}-${row.partition}`)}</h2>
    ${reason && html`<p>${visible(asSentence(capitalized(reason)))} <${Code} code=${row.cause?.code} /></p>`}
    <${Facts} facts=${[
      ["State", html`<${State} word=${row.state} />`],
      ["Wanted", html`<${State} word=${row.wanted} />`],
      ["Behind", `${lagText(row)}, ${inNumber(row.lag_records)} records`],
      ["Last 15 min", html`<${Spark} values=${row.spark} />`],
      ["Source end", inOffset(row.source_end)],
      ["Copied to", inOffset(copiedTo(row))],
      ["Target end", inOffset(row.target_end)],
      ["Verified up to", isKnown(row.verified_until_ms) && row.verified_until_ms > 0 ? inMoment(row.verified_until_ms) : "never compared"],
      ["Slot", row.slot < 0 ? "none" : String(row.slot)],
      ["Case", row.case ? html`<${Code} code=${row.case} />` : "none"],
    ]} />
    <${Details} value=${row} summary="All values" />
    <${ReadOnlyNote} />
    <div class="buttons left">
      ${["pause", "resume", "restart"].map((verb) => html`<${ActionButton} key=${verb} action=${commandAction(flow, verb, subject)} />`)}
      <button type="button" class="main" onClick=${close}>Close</button>
    </div>
  </dialog>`;
}
