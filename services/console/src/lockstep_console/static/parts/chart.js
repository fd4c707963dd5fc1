// A chart over time, by uPlot. It is loaded when the first chart is shown.

import { inClock } from "../lib/format.js";
import { html, useEffect, useRef, useState } from "../lib/preact.js";

const HEIGHT = 170;

/**
 * @typedef {object} ChartLine
 * @property {string} title
 * @property {number} least What the axis reaches at least, so that noise looks flat.
 * @property {number[]} times Unix seconds.
 * @property {(number | null)[]} values
 * @property {(value: number | null) => string} text
 * @property {string} summary What the chart says, for those who do not see it.
 */

/** @returns {Promise<typeof import("../vendor/uplot.js").default>} */
async function loadPlot() {
  if (!document.querySelector("link[data-plot]")) {
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = new URL("../vendor/uplot.css", import.meta.url).href;
    sheet.dataset.plot = "";
    document.head.append(sheet);
  }
  return (await import("../vendor/uplot.js")).default;
}

/** Colours of the canvas: it does not inherit those of the page. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return { line: colour("--accent"), fill: colour("--accent-faint"), text: colour("--muted"), grid: colour("--line") };
}

/**
 * @param {typeof import("../vendor/uplot.js").default} Plot
 * @param {HTMLElement} element
 * @param {ChartLine} line
 * @param {(index: number | null) => void} onPoint
 */
function draw(Plot, element, line, onPoint) {
  const { line: stroke, fill, text, grid } = colours();
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "12px system-ui" };
  return new Plot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: "lockstep" }, y: false, drag: { x: false, y: false } },
      hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
      scales: { x: { time: true }, y: { range: (_plot, _least, most) => [0, Math.max(line.least, (most || 0) * 1.1)] } },
      axes: [
        { ...axis, values: (_plot, splits) => splits.map((value) => inClock(value * 1_000).slice(0, 5)) },
        { ...axis, size: 70, values: (_plot, splits) => splits.map((value) => line.text(value)) },
      ],
      series: [{}, { stroke, fill, width: 1.5, spanGaps: false, points: { show: false } }],
    },
    [line.times, line.values],
    element,
  );
}

/** @param {{ line: ChartLine }} props */
export function Chart({ line }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plot = useRef(/** @type {import("../vendor/uplot.js").default | null} */ (null));
  const [point, setPoint] = useState(/** @type {number | null} */ (null));
  const [scheme, setScheme] = useState(0);
  const data = useRef(line);
  data.current = line;

  useEffect(() => {
    let isGone = false;
    const size = new ResizeObserver(([entry]) => {
      if (entry) plot.current?.setSize({ width: Math.floor(entry.contentRect.width), height: HEIGHT });
    });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => setScheme((before) => before + 1);
    dark.addEventListener("change", redraw);
    void loadPlot().then((Plot) => {
      if (isGone || !box.current) return;
      plot.current = draw(Plot, box.current, data.current, setPoint);
      size.observe(box.current);
    });
    return () => {
      isGone = true;
      size.disconnect();
      dark.removeEventListener("change", redraw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [scheme]);
  useEffect(() => plot.current?.setData([line.times, line.values]), [line.times, line.values]);

  const at = point === null ? undefined : line.times[point];
  return html`<figure class="chart">
    <figcaption>
      <strong>${line.title}</strong>
      <span class="muted">
        ${at === undefined || point === null
          ? line.summary
          : `${inClock(at * 1_000)}: ${line.text(line.values[point] ?? null)}`}
      </span>
    </figcaption>
    <div class="plot" ref=${box} role="img" aria-label=${`${line.title}. ${line.summary}`}></div>
  </figure>`;
}
