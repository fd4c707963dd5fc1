// Where clusters and flows are in the drawing of the overview. Pure.

/** @typedef {{ name: string, x: number, y: number }} Place */
/** @typedef {{ name: string, path: string, middle: { x: number, y: number } }} Arrow */
/** @typedef {{ width: number, height: number, places: Place[], arrows: Arrow[] }} Drawing */

export const BOX = { width: 132, height: 46 };

const GAP = 40;

/** The height of what stands on an arrow. */
export const TAG_HEIGHT = 24;

/**
 * Return the drawing of flows: two clusters side by side, more on a circle. A cluster of every flow is in its middle.
 *
 * @param {{ flow: string, source: string, target: string }[]} flows
 * @returns {Drawing}
 */
export function drawFlows(flows) {
  const names = [...new Set(flows.flatMap((flow) => [flow.source, flow.target]))].sort();
  const places = placeClusters(names, flows);
  const width = Math.max(...places.map((place) => place.x), 0) + BOX.width / 2 + GAP / 2;
  const byName = new Map(places.map((place) => [place.name, place]));
  const pairs = new Set(flows.map((flow) => `${flow.source} ${flow.target}`));
  const arrows = flows.map(({ flow, source, target }) => {
    const isBothWays = pairs.has(`${target} ${source}`);
    return arrowBetween(flow, byName.get(source), byName.get(target), isBothWays ? 24 : 0);
  });
  const lowest = Math.max(...places.map((place) => place.y + BOX.height / 2), ...arrows.map((arrow) => arrow.middle.y + TAG_HEIGHT / 2), 0);
  return { width, height: lowest + GAP / 2, places, arrows };
}

/**
 * @param {string[]} names
 * @param {{ source: string, target: string }[]} flows
 * @returns {Place[]}
 */
function placeClusters(names, flows) {
  const left = BOX.width / 2 + GAP / 2;
  const top = BOX.height / 2 + GAP / 2;
  if (names.length <= 2) {
    return names.map((name, index) => ({ name, x: left + index * 360, y: top + 10 }));
  }
  const hub = names.find((name) => flows.every((flow) => flow.source === name || flow.target === name));
  const ring = names.filter((name) => name !== hub);
  let around = Math.max(300, (hub ? 3 : 2) * (BOX.width + GAP));
  let places = onEllipse(ring, hub, around);
  while (!areApart(places)) {
    around *= 1.1;
    places = onEllipse(ring, hub, around);
  }
  return places;
}

/**
 * @param {string[]} ring
 * @param {string | undefined} hub The cluster in the middle, if there is one.
 * @param {number} around The height of the ellipse.
 * @returns {Place[]}
 */
function onEllipse(ring, hub, around) {
  const left = BOX.width / 2 + GAP / 2;
  const top = BOX.height / 2 + GAP / 2;
  const wide = around * 1.35;
  const places = ring.map((name, index) => {
    const angle = Math.PI + (index * 2 * Math.PI) / ring.length;
    return {
      name,
      x: Math.round(left + (wide / 2) * (1 + Math.cos(angle))),
      y: Math.round(top + (around / 2) * (1 + Math.sin(angle))),
    };
  });
  if (hub !== undefined) places.push({ name: hub, x: Math.round(left + wide / 2), y: Math.round(top + around / 2) });
  return places;
}

/**
 * Return whether no two boxes touch. Neighbours on the ellipse and the middle are what could.
 *
 * @param {Place[]} places
 */
function areApart(places) {
  return places.every((place, index) =>
    places.slice(index + 1).every((other) => Math.abs(place.x - other.x) >= BOX.width + 8 || Math.abs(place.y - other.y) >= BOX.height + 8),
  );
}

/**
 * @param {string} name
 * @param {Place | undefined} from
 * @param {Place | undefined} to
 * @param {number} bend How far the middle is beside the straight line.
 * @returns {Arrow}
 */
function arrowBetween(name, from, to, bend) {
  const start = from ?? { x: 0, y: 0 };
  const end = to ?? { x: 0, y: 0 };
  const length = Math.hypot(end.x - start.x, end.y - start.y) || 1;
  const side = { x: (end.y - start.y) / length, y: -(end.x - start.x) / length };
  const begin = edgeOf(start, end, side, bend);
  const finish = edgeOf(end, start, side, bend);
  const middle = {
    x: (begin.x + finish.x) / 2 + side.x * bend,
    y: (begin.y + finish.y) / 2 + side.y * bend,
  };
  // A quadratic curve passes half-way between its chord and its control point.
  const control = { x: 2 * middle.x - (begin.x + finish.x) / 2, y: 2 * middle.y - (begin.y + finish.y) / 2 };
  return { name, middle: rounded(middle), path: `M${text(begin)}Q${text(control)} ${text(finish)}` };
}

/**
 * Return where a line leaves the box of a place, a little beside its middle so that two arrows do not meet.
 *
 * @param {{ x: number, y: number }} place
 * @param {{ x: number, y: number }} towards
 * @param {{ x: number, y: number }} side
 * @param {number} bend
 */
function edgeOf(place, towards, side, bend) {
  const dx = towards.x - place.x;
  const dy = towards.y - place.y;
  const room = { x: BOX.width / 2 + 5, y: BOX.height / 2 + 5 };
  const scale = Math.min(dx ? room.x / Math.abs(dx) : Infinity, dy ? room.y / Math.abs(dy) : Infinity);
  const reach = Number.isFinite(scale) ? scale : 0;
  return { x: place.x + dx * reach + side.x * bend * 0.35, y: place.y + dy * reach + side.y * bend * 0.35 };
}

/** @param {{ x: number, y: number }} point */
function rounded(point) {
  return { x: Math.round(point.x), y: Math.round(point.y) };
}

/** @param {{ x: number, y: number }} point */
function text(point) {
  return `${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
}
