// The parts of the vendored libraries that the console uses, from one place.

import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { Fragment, render } from "../vendor/preact.js";
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact-hooks.js";
export { batch, computed, effect, signal, untracked } from "../vendor/signals.js";

/** Make elements from a template. A value is text, never markup. */
export const html = htm.bind(h);

/** @typedef {import("../vendor/preact.js").ComponentChildren} Children */
