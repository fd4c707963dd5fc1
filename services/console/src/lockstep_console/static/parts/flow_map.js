// The drawing of clusters and flows. The list beside it says the same to those who do not see it.

import { UNKNOWN, inTime, visible } from "../lib/format.js";
import { BOX, TAG_HEIGHT, drawFlows } from "../lib/layout.js";
import { html, useMemo } from "../lib/preact.js";
import { flowSignal } from "../lib/store.js";
import { MARKS, flowTone } from "../lib/tone.js";

const LONGEST = 16;

/** @param {string} flow */
function endsOf(flow) {
  const [source = "", target = ""] = flow.split("->", 2);
  return { flow, source, target };
}

/** @param {{ names: string[] }} props */
export function FlowMap({ names }) {
  const drawing = useMemo(() => drawFlows(names.map(endsOf)), [names]);
  return html`<svg class="map" role="img" viewBox=${`0 0 ${drawing.width} ${drawing.height}`}
    aria-label=${`Clusters ${drawing.places.map((place) => place.name).join(", ")} and the flows ${names.join(", ")}`}>
    <defs>
      <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="11" markerHeight="11" markerUnits="userSpaceOnUse" orient="auto">
        <path d="M0 0L8 4L0 8Z" class="arrow-head" />
      </marker>
    </defs>
    ${drawing.arrows.map((arrow) => html`<${FlowArrow} key=${arrow.name} arrow=${arrow} />`)}
    ${drawing.places.map(
      ({ name, x, y }) =>
        html`<g key=${name} class="cluster" transform=${`translate(${x} ${y})`}>
          <rect x=${-BOX.width / 2} y=${-BOX.height / 2} width=${BOX.width} height=${BOX.height} rx="6" />
          <text dy="0.35em">${shortened(visible(name))}</text>
        </g>`,
    )}
  </svg>`;
}

/** @param {string} name */
function shortened(name) {
  return name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
}

/** @param {{ arrow: import("../lib/layout.js").Arrow }} props */
function FlowArrow({ arrow }) {
  const flow = flowSignal(arrow.name).value;
  const { tone, word } = flowTone(flow);
  const lag = flow && !flow.unknown ? inTime(flow.lag_ms) : UNKNOWN;
  return html`<g class=${`flow ${tone}`}>
    <title>${`${arrow.name}: ${word}, ${lag} behind`}</title>
    <path d=${arrow.path} marker-end="url(#arrow)" />
    <g transform=${`translate(${arrow.middle.x} ${arrow.middle.y})`}>
      <rect class="tag" x="-42" y=${-TAG_HEIGHT / 2} width="84" height=${TAG_HEIGHT} rx=${TAG_HEIGHT / 2} />
      <text dy="0.35em">${MARKS[tone]} ${lag}</text>
    </g>
  </g>`;
}
