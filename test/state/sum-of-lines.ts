import { expect } from 'vitest'
import {
  type JournalEntry,
  type PageEntry,
  type Span,
  spanOf,
  type Window,
  type WindowRun,
} from '../../src/core/index.ts'
import { chainFromEntry } from '../../src/state/checkpoint/folded-chain.ts'
import type { CheckpointState } from '../../src/state/index.ts'
import { factsOf, type JournalLine, keysOf } from './lines.ts'

/** The events of one partition, in order. */
type Event =
  /** A page began in it. */
  | { readonly what: 'stood'; readonly page: PageEntry }
  | { readonly what: 'rows'; readonly rows: number }
  | { readonly what: 'refused'; readonly items: number }
  | { readonly what: 'forgotten'; readonly items: number }
  /** The next page will begin in it. */
  | { readonly what: 'reached' }
  | { readonly what: 'finished' }
  | { readonly what: 'failed'; readonly fact: Extract<JournalEntry, { kind: 'failed' }> }
  /** A rewrite described it: this is the first of its events. */
  | { readonly what: 'summed up'; readonly fact: Extract<JournalEntry, { kind: 'partition' }> }

/** The entries of one chain in a journal. */
type Course = {
  readonly chain: number
  readonly query: string
  windows: WindowRun
  requested: Window | null
  watermark: number
  hasEnded: boolean
  readonly pages: PageEntry[]
  restart: Extract<JournalEntry, { kind: 'restart' }> | null
  /** Pages after the last restart. */
  since: PageEntry[]
}

type Story = { readonly events: ReadonlyMap<string, readonly Event[]>; readonly courses: readonly Course[] }

function storyOf(facts: readonly JournalEntry[]): Story {
  const events = new Map<string, Event[]>()
  const courses = new Map<number, Course>()
  const tell = (key: string, event: Event): void => {
    events.set(key, [...(events.get(key) ?? []), event])
  }
  const end = (course: Course): void => {
    course.hasEnded = true
    for (const key of keysOf(course)) tell(key, { what: 'finished' })
  }
  for (const fact of facts) {
    const course = 'chain' in fact && fact.chain !== undefined ? courses.get(fact.chain) : undefined
    if (fact.kind === 'failed') tell(fact.partition, { what: 'failed', fact })
    else if (fact.kind === 'partition') tell(fact.partition, { what: 'summed up', fact })
    else if (fact.kind === 'chain') {
      const { chain, query, windows } = chainFromEntry(fact)
      const beginning = {
        requested: windows.range,
        watermark: 0,
        hasEnded: false,
        pages: [],
        restart: null,
        since: [],
      }
      courses.set(chain, { chain, query, windows, ...beginning })
    } else if (course === undefined) continue
    else if (fact.kind === 'restart')
      Object.assign(course, { restart: fact, since: [], requested: course.windows.range })
    else if (fact.kind === 'shorten') {
      course.windows = course.windows.part(0, fact.windows)
      if (course.watermark >= fact.windows) end(course)
    } else if (fact.kind === 'page') {
      const keys = keysOf(course)
      tell(keys[course.watermark]!, { what: 'stood', page: fact })
      for (const { window, items } of fact.quarantine ?? []) {
        tell(`${course.query}/${window}`, { what: 'refused', items })
      }
      for (const { window, items } of fact.forgotten ?? [])
        tell(`${course.query}/${window}`, { what: 'forgotten', items })
      for (const { window, rows } of fact.slices ?? [])
        tell(`${course.query}/${window}`, { what: 'rows', rows })
      course.pages.push(fact)
      course.since.push(fact)
      const before = course.watermark
      course.watermark = fact.watermark ?? before
      if (fact.next === null || course.watermark >= keys.length) end(course)
      else {
        for (const key of keys.slice(before, course.watermark)) tell(key, { what: 'finished' })
        tell(keys[course.watermark]!, { what: 'reached' })
      }
    }
  }
  return { events, courses: [...courses.values()] }
}

/** The expected state of one partition. */
function recordOf(events: readonly Event[]) {
  const all = <W extends Event['what']>(what: W) =>
    events.filter((event): event is Extract<Event, { what: W }> => event.what === what)
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
  const pages = all('stood').map(({ page }) => page)
  const failures = all('failed').map(({ fact }) => fact)
  const last = events.at(-1)!
  // Nothing follows for a pruned partition.
  if (last.what === 'summed up') {
    const { state = 'done', rows, pages, requests, quarantined } = last.fact
    const none = { repeated: 0, forgotten: 0, quarantineEnd: 0, error: null }
    return { state, rows, pages, requests, quarantined, ...none }
  }
  const failure = events.findLast(({ what }) => ['stood', 'finished', 'failed'].includes(what))
  return {
    state: last.what === 'finished' ? 'done' : last.what === 'failed' ? 'failed' : 'partial',
    rows: sum(all('rows').map(({ rows }) => rows)),
    pages: pages.length,
    requests: sum([...pages, ...failures].map(({ requests }) => requests)),
    quarantined: sum(all('refused').map(({ items }) => items)),
    repeated: sum(pages.map(({ repeated }) => repeated ?? 0)),
    forgotten: sum(all('forgotten').map(({ items }) => items)),
    quarantineEnd: 0,
    error: failure?.what === 'failed' ? failure.fact.error : null,
  }
}

/** The last value of a field that not every page has. */
function lastSaid<K extends 'position' | 'size'>(pages: readonly PageEntry[], name: K): PageEntry[K] | null {
  return pages.findLast((page) => page[name] !== undefined)?.[name] ?? null
}

function expectChain(state: CheckpointState, course: Course): void {
  const { chain, query, windows, requested, watermark, pages, restart, since } = course
  const { seen, ids, windows: own, ...record } = state.chains.get(chain)!
  const kept = pages.reduce(
    (count, { ids }) => (ids === undefined ? count : Math.min(count, ids.keep) + 1),
    0,
  )
  expect(ids).toHaveLength(kept)
  expect(record).toEqual({
    chain,
    query,
    watermark: watermark,
    feed: null,
    next: since.at(-1)?.next ?? null,
    pages: pages.length,
    position: lastSaid(pages, 'position'),
    requested,
    inOrder: pages.every(({ position }) => position !== null),
    since: restart?.since ?? null,
    size: lastSaid(pages, 'size'),
  })
  expect([own.order, own.bounds]).toEqual([windows.order, windows.bounds])
  const cursors = since.slice(0, -1).map(({ next }) => next!)
  expect(seen?.size ?? 0).toBe(cursors.length)
  expect(cursors.filter((cursor) => seen?.has(cursor) !== true)).toEqual([])
  for (const { next } of since.slice(-1)) expect(seen?.has(next!) ?? false).toBe(false)
}

/** Compares a state with the sum of its lines, computed independently and from the beginning. */
export function expectToBeTheSumOf(state: CheckpointState, lines: readonly JournalLine[]): void {
  const facts = factsOf(lines)
  const of = <K extends JournalEntry['kind']>(kind: K) =>
    facts.filter((fact): fact is Extract<JournalEntry, { kind: K }> => fact.kind === kind)
  const { events, courses } = storyOf(facts)
  const expected = [...events].map(([key, own]) => [key, recordOf(own)] as const)
  expect(new Map(state.partitions)).toEqual(new Map(expected))

  const alive = courses.filter(({ hasEnded }) => !hasEnded)
  expect([...state.chains.keys()].sort((a, b) => a - b)).toEqual(alive.map(({ chain }) => chain))
  for (const course of alive) expectChain(state, course)
  expect(state.nextChain).toBe(courses.length)

  const pages = of('page')
  const unknown: Record<string, number> = {}
  for (const { unknown_fields = {} } of pages) {
    for (const [name, times] of Object.entries(unknown_fields)) unknown[name] = (unknown[name] ?? 0) + times
  }
  expect(Object.fromEntries(state.unknownFields)).toEqual(unknown)

  const [opened, sealed] = [of('open'), of('seal')]
  const stillOpen = opened.filter(({ shard }) => !sealed.some((line) => line.shard === shard))
  expect([...state.openShards.keys()]).toEqual(stillOpen.map(({ shard }) => shard))
  for (const { shard, folder, part } of stillOpen) {
    const logged = pages.flatMap((page) => page.logged ?? []).filter((log) => log.shard === shard)
    const partitions = new Set<string>()
    let importedAt: Span | null = null
    for (const page of pages) {
      const { query } = courses.find(({ chain }) => chain === page.chain)!
      for (const slice of page.slices ?? []) {
        if (slice.shard !== shard) continue
        partitions.add(`${query}/${slice.window}`)
        importedAt = spanOf(importedAt, slice.imported_at)
      }
    }
    const { batches: records, ...found } = state.openShards.get(shard)!
    expect(found).toEqual({ shard, folder, part, partitions, importedAt })
    expect(records.map(({ rows }) => rows)).toEqual(logged.map(({ rows }) => rows))
  }
  expect([...state.shards]).toEqual(sealed.map(({ kind: _, ...facts }) => facts))
  const numbers = [...opened, ...sealed].map(({ shard }) => shard)
  expect(state.nextShard).toBe(Math.max(-1, ...numbers) + 1)
  const folders = new Map<string, Set<number>>()
  const note = (folder: string, part: number): void => {
    folders.set(folder, (folders.get(folder) ?? new Set()).add(part))
  }
  for (const { folder, part } of opened) note(folder, part)
  for (const { path } of sealed) {
    const [, folder, part] = /^(.*)\/part-(\d+)\.csv$/.exec(path)!
    note(folder!, Number(part))
  }
  expect(new Map(state.partsOf)).toEqual(new Map([...folders].map(([folder, parts]) => [folder, parts.size])))

  expect(state.runs).toEqual(runsOf(facts))
  const left = facts.map((fact) =>
    fact.kind === 'end' ? fact.searches_remaining : fact.kind === 'measured' ? fact.left : undefined,
  )
  expect(state.searchesRemaining).toBe(left.findLast((searches) => searches !== undefined) ?? null)
  expect(state.service).toMatchObject({
    pageSize: null,
    limit: of('limit').at(-1)?.size ?? null,
    reading: of('measured').at(-1)?.reading ?? null,
    times: facts
      .slice(facts.findLastIndex(({ kind }) => kind === 'limit') + 1)
      .flatMap((fact) => (fact.kind === 'measured' ? (fact.times ?? []) : []))
      .slice(-32),
    reportsSearchesLeft:
      of('measured').findLast(({ tells_searches }) => tells_searches !== undefined)?.tells_searches ?? null,
  })
  expect(state.secretChecks).toEqual(new Map(of('secret').map(({ query, check }) => [query, check])))
  expect(state.queries).toEqual(new Map(of('query').map(({ name, value }) => [name, value])))
  expect(state.prunes).toEqual(of('prune').map(({ kind: _, ...prune }) => prune))
}

/** A run without a count of its requests sent those of its pages and failures. */
function runsOf(facts: readonly JournalEntry[]) {
  const begun = facts.flatMap((fact, index) => (fact.kind === 'run' ? [{ fact, index }] : []))
  return begun.map(({ fact: { kind: _, ...run }, index }, number) => {
    const own = facts.slice(index + 1, begun[number + 1]?.index)
    const ends = own.filter((fact) => fact.kind === 'end')
    const end = ends.at(-1)
    // Entries after its end belong to no run.
    const [first] = own.flatMap((fact, at) => (fact.kind === 'end' ? [at] : []))
    const pages = own.slice(0, first).flatMap((fact) => (fact.kind === 'page' ? [fact] : []))
    const measured = own.slice(0, first).flatMap((fact) => (fact.kind === 'measured' ? [fact] : []))
    const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
    const sent = own.flatMap((fact) =>
      fact.kind === 'page' || fact.kind === 'failed' ? [fact.requests] : [],
    )
    return {
      ...run,
      finished_at: end?.finished_at ?? null,
      status: end?.status ?? null,
      requests: end?.requests ?? sent.reduce((sum, requests) => sum + requests, 0),
      retries: end?.retries ?? 0,
      months: facts.flatMap((fact) =>
        fact.kind === 'month' && fact.run === run.run
          ? [{ month: fact.month, before: fact.before, searches: fact.searches ?? 0 }]
          : [],
      ),
      rows: sum(pages.flatMap(({ slices = [] }) => slices.map(({ rows }) => rows))),
      quarantined: sum(pages.flatMap(({ quarantine = [] }) => quarantine.map(({ items }) => items))),
      repeated: sum(pages.map(({ repeated = 0 }) => repeated)),
      forgotten: sum(pages.flatMap(({ forgotten = [] }) => forgotten.map(({ items }) => items))),
      failures: own.slice(0, first).filter(({ kind }) => kind === 'failed').length,
      searchesSpent: measured.findLast(({ spent }) => spent !== undefined)?.spent ?? null,
      searchesRemaining:
        ends.findLast(({ searches_remaining }) => searches_remaining !== undefined)?.searches_remaining ??
        measured.findLast(({ left }) => left !== undefined)?.left ??
        null,
      reasons: ends.findLast(({ reasons }) => reasons !== undefined)?.reasons ?? {},
    }
  })
}

/** The figures of partitions and those of shards are kept separately, and must be equal. */
export function expectRowsToBeInShards({ partitions, shards, openShards }: CheckpointState): void {
  const sum = (of: Iterable<{ readonly rows: number }>): number => {
    let rows = 0
    for (const each of of) rows += each.rows
    return rows
  }
  const inShards = [...openShards.values()].map(({ batches: records }) => sum(records))
  const known = sum([...partitions].map(([, record]) => record))
  expect(known).toBe(inShards.reduce((all, rows) => all + rows, sum(shards)))
  for (const { partitions: within } of [...shards, ...openShards.values()]) {
    for (const key of within) expect(partitions.get(key)?.rows ?? 0).toBeGreaterThan(0)
  }
}
