// A long list of the API, read page by page as its rows come into sight.

import { get } from "../lib/api.js";
import { useCallback, useEffect, useRef, useState } from "../lib/preact.js";
import { isStale } from "../lib/store.js";
import { useThrottled } from "./basics.js";

const PAGE = 100;

/** Rows that are not live are read again this often while something changes. */
const REFRESH_MS = 5_000;

/**
 * @typedef {object} Pages
 * @property {number} total All rows.
 * @property {number} matching Those that pass the filter.
 * @property {boolean} isRead Whether an answer has come.
 * @property {string} unknown Why the target does not say, or "".
 * @property {unknown} problem
 * @property {number} atMs
 * @property {(index: number) => any} rowAt
 * @property {(first: number, last: number) => void} want
 * @property {() => void} refresh Read what is in sight again, not more often than each 5 s.
 * @property {() => void} reload Read it again now.
 * @property {(rows: any[]) => void} putFirst Replace the first rows, which came by the stream.
 */

/**
 * Read a list page by page.
 *
 * @param {string} path
 * @param {string} field The field of the answer with the rows.
 * @param {Record<string, string | number>} query Filter and order. A new one begins anew.
 * @returns {Pages}
 */
export function usePages(path, field, query) {
  const key = `${path} ${JSON.stringify(query)}`;
  const empty = { key, pages: new Map(), total: 0, matching: 0, isRead: false, unknown: "", atMs: 0 };
  const store = useRef(empty);
  const [, redraw] = useState(0);
  const [problem, setProblem] = useState(/** @type {unknown} */ (null));
  const range = useRef({ first: 0, last: PAGE });
  const reading = useRef(/** @type {Map<number, AbortController>} */ (new Map()));
  if (store.current.key !== key) store.current = empty;

  const read = useCallback(
    (/** @type {number} */ page) => {
      if (reading.current.has(page)) return;
      const cancel = new AbortController();
      reading.current.set(page, cancel);
      get(path, { ...query, limit: PAGE, offset: page * PAGE }, cancel.signal)
        .then((body) => {
          if (store.current.key !== key) return;
          const { total, matching, at_ms: atMs, unknown = "" } = body;
          store.current.pages.set(page, body[field] ?? []);
          Object.assign(store.current, { total, matching, atMs, unknown, isRead: true });
          setProblem(null);
          redraw((count) => count + 1);
        })
        .catch((error) => {
          if (!cancel.signal.aborted) setProblem(error);
        })
        .finally(() => {
          if (reading.current.get(page) === cancel) reading.current.delete(page);
        });
    },
    [key],
  );

  const readSight = useCallback(
    (/** @type {boolean} */ again) => {
      const { first, last } = range.current;
      for (let page = Math.floor(first / PAGE); page <= Math.floor(Math.max(first, last - 1) / PAGE); page += 1) {
        if (again || !store.current.pages.has(page)) read(page);
      }
    },
    [read],
  );

  useEffect(() => {
    range.current = { first: 0, last: PAGE };
    readSight(true);
    return () => {
      for (const cancel of reading.current.values()) cancel.abort();
      reading.current.clear();
    };
  }, [readSight]);

  return {
    ...store.current,
    problem,
    rowAt: (index) => store.current.pages.get(Math.floor(index / PAGE))?.[index % PAGE],
    want: (first, last) => {
      range.current = { first, last };
      readSight(false);
    },
    refresh: useThrottled(() => {
      if (!isStale.value) readSight(true);
    }, REFRESH_MS),
    reload: () => readSight(true),
    putFirst: (rows) => {
      const page = store.current.pages.get(0);
      if (!page || rows.length > page.length) return;
      store.current.pages.set(0, [...rows, ...page.slice(rows.length)]);
      redraw((count) => count + 1);
    },
  };
}
