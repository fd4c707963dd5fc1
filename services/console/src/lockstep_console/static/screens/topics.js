// Topics with the sums of their partitions.

import { commandAction } from "../lib/actions.js";
import { flowPath } from "../lib/api.js";
import { inNumber, inTime, inWords, visible } from "../lib/format.js";
import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { flowHref } from "../lib/route.js";
import { onChange } from "../lib/store.js";
import { toneOf } from "../lib/tone.js";
import { ActionButton } from "../parts/action_dialog.js";
import { Empty, Loading, ProblemNote, State, UnknownNote } from "../parts/basics.js";
import { ListHead } from "../parts/list_head.js";
import { usePages } from "../parts/pages.js";
import { VirtualTable } from "../parts/table.js";

/** @param {{ flow: string }} props */
export function Topics({ flow }) {
  const [filter, setFilter] = useState("");
  const [onlyTrouble, setOnlyTrouble] = useState(false);
  const [order, setOrder] = useState(/** @type {{ by: string, order: "asc" | "desc" }} */ ({ by: "lag", order: "desc" }));
  /** @type {Record<string, string | number>} */
  const query = { sort: order.by, order: order.order, filter, only: onlyTrouble ? "trouble" : "" };
  const pages = usePages(flowPath(flow, "/topics"), "topics", query);
  const live = useRef(pages);
  live.current = pages;
  useEffect(() => onChange("status", (data) => data.flow === flow && live.current.refresh()), [flow]);
  const sorting = {
    ...order,
    change: (/** @type {string} */ by) =>
      setOrder(by === order.by ? { by, order: order.order === "asc" ? "desc" : "asc" } : { by, order: by === "lag" ? "desc" : "asc" }),
  };
  return html`<div>
    <${ListHead} pages=${pages} noun="topic" filter=${filter} onFilter=${setFilter} onlyTrouble=${onlyTrouble} onOnlyTrouble=${setOnlyTrouble} />
    ${pages.problem !== null && html`<${ProblemNote} problem=${pages.problem} retry=${pages.reload} />`}
    ${pages.unknown && html`<${UnknownNote} reason=${pages.unknown} />`}
    ${!pages.isRead && !pages.problem && html`<${Loading} what="the topics" />`}
    ${pages.isRead && !pages.matching && !pages.unknown && html`<${Empty}>${filter || onlyTrouble ? "No topic is like this." : "The flow has no topic."}<//>`}
    ${pages.matching > 0 &&
    html`<${VirtualTable} label="Topics" columns=${columnsOf(flow)} total=${pages.matching} rowAt=${pages.rowAt} onRange=${pages.want} sorting=${sorting} />`}
  </div>`;
}

/**
 * @param {string} flow
 * @returns {import("../parts/table.js").Column<Api.Topic>[]}
 */
function columnsOf(flow) {
  return [
    {
      title: "Topic",
      name: true,
      sort: "name",
      cell: (row) => html`<a class="name" title=${visible(row.topic)} href=${flowHref(flow, "partitions", { filter: row.topic })}>${visible(row.topic)}</a>`,
    },
    { title: "Remote topic", cell: (row) => html`<span class="name" title=${visible(row.remote)}>${visible(row.remote)}</span>` },
    { title: "State", cell: (row) => html`<${TopicState} row=${row} />` },
    { title: "Behind", number: true, sort: "lag", cell: (row) => (row.partitions === 0 ? "" : row.lag_records === 0 ? "0 s" : inTime(row.lag_ms)) },
    { title: "Records behind", number: true, cell: (row) => (row.partitions === 0 ? "" : inNumber(row.lag_records)) },
    { title: "Partitions", number: true, cell: (row) => inNumber(row.partitions) },
    { title: "Action", cell: (row) => row.partitions > 0 && html`<${ActionButton} action=${commandAction(flow, row.wanted === "running" ? "pause" : "resume", `topic:${row.topic}`)} isInRow />` },
    { title: "Reason", cell: (row) => html`<span title=${row.trouble || row.note}>${visible(row.trouble || row.note)}</span>` },
  ];
}

/** @param {{ row: Api.Topic }} props */
function TopicState({ row }) {
  if (row.halted) return html`<${State} word=${`${row.halted} halted`} tone="bad" />`;
  return row.wanted === "running" ? html`<${State} word=${inWords(row.phase)} tone=${toneOf(row.phase)} />` : html`<${State} word=${row.wanted} />`;
}
