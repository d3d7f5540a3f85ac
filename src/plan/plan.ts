import {
  ExportError,
  type Micros,
  type Partition,
  type PartitionBy,
  type Pipeline,
  partitionKey,
  type Query,
  queryName,
  type Window,
} from '../core/index.ts'
import { splitWindows } from './windows.ts'

/** What the checkpoint knows about a partition that has begun. */
export type Begun = { readonly window: Window | null; readonly done: boolean }

/** Looks up the partitions of one query that have begun, by their names ({@link queryName}). */
export type BegunPartitions = (query: string) => readonly Begun[]

export type Plan = {
  readonly total: number
  /** Every partition, in the order of work; made as it is asked for, so that a million cost little. */
  partitions(): Iterable<Partition>
}

/**
 * Queries × windows, less what earlier runs have covered: a window that cuts across exported ones is
 * reduced to what is missing, so that no row comes twice whatever became of `every` and `until`.
 * The work goes folder by folder: window by window where only the window is a folder, else query by query.
 * @throws ExportError `config` when a half-exported window would have to be cut
 */
export function planPartitions(pipeline: Pipeline, now: Micros, begunOf: BegunPartitions): Plan {
  const { queries, windows: settings } = pipeline.extract
  const wanted = settings === null ? [null] : splitWindows(settings, now)
  const names = queries.map(queryName)
  const reshaped = new Map<number, readonly (Window | null)[]>()
  let total = 0
  const wantedKeys = new Set(wanted.map((window) => partitionKey('', window)))
  for (const [index, name] of names.entries()) {
    const begun = begunOf(name)
    if (!begun.every(({ window }) => wantedKeys.has(partitionKey('', window)))) {
      reshaped.set(index, reshape(wanted, begun, name, pipeline.file))
    }
    total += (reshaped.get(index) ?? wanted).length
  }
  return {
    total,
    partitions: () =>
      windowMajor(pipeline.load.partitionBy)
        ? byWindow(queries, names, wanted, reshaped)
        : byQuery(queries, names, wanted, reshaped),
  }
}

function windowMajor(partitionBy: readonly PartitionBy[]): boolean {
  return partitionBy.length === 1 && partitionBy[0] === 'window'
}

type Reshaped = ReadonlyMap<number, readonly (Window | null)[]>

function* byQuery(
  queries: readonly Query[],
  names: readonly string[],
  wanted: readonly (Window | null)[],
  reshaped: Reshaped,
): Generator<Partition> {
  for (const [index, query] of queries.entries()) {
    for (const window of reshaped.get(index) ?? wanted) {
      yield { key: partitionKey(names[index]!, window), query, window }
    }
  }
}

function* byWindow(
  queries: readonly Query[],
  names: readonly string[],
  wanted: readonly (Window | null)[],
  reshaped: Reshaped,
): Generator<Partition> {
  // Windows that only some queries have take their place among the others by where they begin.
  const all = new Map<string, Window | null>()
  for (const windows of [wanted, ...reshaped.values()]) {
    for (const window of windows) all.set(partitionKey('', window), window)
  }
  const ordered = [...all].sort(([, a], [, b]) => (a?.from ?? 0) - (b?.from ?? 0))
  const own = new Map(
    [...reshaped].map(([index, windows]) => [index, new Set(windows.map((w) => partitionKey('', w)))]),
  )
  const common = new Set(wanted.map((window) => partitionKey('', window)))
  for (const [key, window] of ordered) {
    for (const [index, query] of queries.entries()) {
      if ((own.get(index) ?? common).has(key)) yield { key: names[index] + key, query, window }
    }
  }
}

/** The windows that have begun within the wanted range, as they are, and what of the wanted ones they leave. */
function reshape(
  wanted: readonly (Window | null)[],
  begun: readonly Begun[],
  name: string,
  file: string,
): readonly (Window | null)[] {
  const windows = wanted.filter((window) => window !== null)
  if (windows.length < wanted.length || begun.some(({ window }) => window === null)) {
    throw new ExportError(
      'config',
      `${name} was exported ${windows.length < wanted.length ? 'in windows' : 'without windows'} before, and extract.windows now says otherwise`,
      file,
      'Restore extract.windows, choose another load.path, or start over with --fresh.',
    )
  }
  const [from, until] = [windows[0]?.from ?? 0, windows.at(-1)?.until ?? 0]
  const kept: Window[] = []
  for (const { window, done } of begun) {
    if (window === null || window.until <= from || window.from >= until) continue
    if (!done && !isWanted(window, windows) && (window.from < from || window.until > until)) {
      throw new ExportError(
        'config',
        `${partitionKey(name, window)} is half exported, and the windows now asked for would cut it`,
        file,
        'Finish it first with the earlier extract.windows, choose another load.path, or start over with --fresh.',
      )
    }
    kept.push(window)
  }
  kept.sort((a, b) => a.from - b.from)
  return [...kept, ...windows.flatMap((window) => subtract(window, kept))].sort((a, b) => a.from - b.from)
}

function isWanted(window: Window, wanted: readonly Window[]): boolean {
  return wanted.some(({ from, until }) => from === window.from && until === window.until)
}

/** What is left of a window without the ranges given, which are in order. */
function subtract(window: Window, ranges: readonly Window[]): Window[] {
  const left: Window[] = []
  let { from } = window
  for (const range of ranges) {
    if (range.until <= from || range.from >= window.until) continue
    if (range.from > from) left.push({ from, until: range.from })
    from = Math.max(from, range.until)
  }
  if (from < window.until) left.push({ from, until: window.until })
  return left
}
