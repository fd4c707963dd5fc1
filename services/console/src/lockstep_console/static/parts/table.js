// Tables: a plain one, and one of which only the rows in sight exist. Both scroll within their own region.

import { html, useEffect, useRef, useState } from "../lib/preact.js";

/** @typedef {import("../lib/preact.js").Children} Children */

/**
 * @template T
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: T) => Children} cell
 * @property {boolean} [number] It is aligned as numbers are.
 * @property {boolean} [name] It names its row.
 * @property {string} [sort] The word for the API by which it can be sorted.
 * @property {string} [hint] What the title means.
 */

/** @typedef {{ by: string, order: "asc" | "desc", change: (by: string) => void }} Sorting */

/**
 * @param {{ columns: Column<any>[], sorting?: Sorting }} props
 */
function Head({ columns, sorting }) {
  return html`<thead>
    <tr>
      ${columns.map((column) => {
        const sorted = sorting && column.sort === sorting.by ? sorting.order : "";
        const order = { "": undefined, asc: "ascending", desc: "descending" }[sorted];
        const arrow = { "": "", asc: " ↑", desc: " ↓" }[sorted];
        return html`<th key=${column.title} scope="col" class=${column.number ? "number" : ""} aria-sort=${order} title=${column.hint}>
          ${column.sort && sorting
            ? html`<button type="button" onClick=${() => sorting.change(column.sort ?? "")}>
                ${column.title}<span aria-hidden="true">${arrow}</span>
              </button>`
            : column.title}
        </th>`;
      })}
    </tr>
  </thead>`;
}

/**
 * @param {{ columns: Column<any>[], row: any }} props
 */
function Cells({ columns, row }) {
  return columns.map((column) =>
    column.name
      ? html`<th key=${column.title} scope="row">${column.cell(row)}</th>`
      : html`<td key=${column.title} class=${column.number ? "number" : ""}>${column.cell(row)}</td>`,
  );
}

/**
 * A table of few rows. `more` may give what stands under a row.
 *
 * @param {{ label: string, columns: Column<any>[], rows: any[], keyOf: (row: any) => string, sorting?: Sorting,
 *   more?: (row: any) => Children }} props
 */
export function Table({ label, columns, rows, keyOf, sorting, more }) {
  return html`<div class="scroll" role="region" aria-label=${label} tabindex="0">
    <table>
      <caption class="hidden">${label}</caption>
      <${Head} columns=${columns} sorting=${sorting} />
      <tbody>
        ${rows.flatMap((row) => {
          const under = more?.(row);
          return [
            html`<tr key=${keyOf(row)}><${Cells} columns=${columns} row=${row} /></tr>`,
            under && html`<tr key=${`${keyOf(row)} more`} class="more"><td colspan=${columns.length}>${under}</td></tr>`,
          ];
        })}
      </tbody>
    </table>
  </div>`;
}

/** The height of a row of a virtual table, as in the style sheet. */
export const ROW_PX = 40;

const SPARE = 8;

/**
 * Return which rows are to exist. Pure.
 *
 * @param {number} scrolledPx How far the region is scrolled.
 * @param {number} heightPx The height of the region.
 * @param {number} total
 * @returns {{ first: number, last: number }} `last` is the one behind the last row.
 */
export function rowsInSight(scrolledPx, heightPx, total) {
  const first = Math.max(0, Math.min(total, Math.floor(scrolledPx / ROW_PX)) - SPARE);
  return { first, last: Math.min(total, Math.ceil((scrolledPx + heightPx) / ROW_PX) + SPARE) };
}

/**
 * A table of many rows. `rowAt` gives a row, or undefined if it is not read yet; `onRange` says which ones are in sight.
 *
 * @param {{ label: string, columns: Column<any>[], total: number, rowAt: (index: number) => any,
 *   onRange: (first: number, last: number) => void, sorting?: Sorting }} props
 */
export function VirtualTable({ label, columns, total, rowAt, onRange, sorting }) {
  const region = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [sight, setSight] = useState({ scrolled: 0, height: 600 });
  const { first, last } = rowsInSight(sight.scrolled, sight.height, total);
  const waiting = useRef(0);
  const look = () => {
    waiting.current ||= requestAnimationFrame(() => {
      waiting.current = 0;
      const element = region.current;
      if (element) setSight({ scrolled: element.scrollTop, height: element.clientHeight });
    });
  };
  useEffect(() => {
    look();
    window.addEventListener("resize", look);
    return () => {
      window.removeEventListener("resize", look);
      cancelAnimationFrame(waiting.current);
    };
  }, []);
  useEffect(() => onRange(first, last), [first, last, total]);
  const rows = [];
  for (let index = first; index < last; index += 1) {
    const row = rowAt(index);
    rows.push(
      html`<tr key=${index} aria-rowindex=${index + 2}>
        ${row === undefined
          ? html`<td colspan=${columns.length} class="muted">Reading ...</td>`
          : html`<${Cells} columns=${columns} row=${row} />`}
      </tr>`,
    );
  }
  return html`<div class="scroll virtual" role="region" aria-label=${label} tabindex="0" ref=${region} onScroll=${look}>
    <table aria-rowcount=${total + 1}>
      <caption class="hidden">${label}</caption>
      <${Head} columns=${columns} sorting=${sorting} />
      <tbody>
        <${Spacer} rows=${first} columns=${columns.length} />
        ${rows}
        <${Spacer} rows=${total - last} columns=${columns.length} />
      </tbody>
    </table>
  </div>`;
}

/**
 * The room of rows that do not exist.
 *
 * @param {{ rows: number, columns: number }} props
 */
function Spacer({ rows, columns }) {
  const cell = useRef(/** @type {HTMLTableCellElement | null} */ (null));
  useEffect(() => {
    if (cell.current) cell.current.style.height = `${rows * ROW_PX}px`;
  }, [rows]);
  return html`<tr class="spacer" aria-hidden="true"><td ref=${cell} colspan=${columns}></td></tr>`;
}
