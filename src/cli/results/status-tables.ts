import type { PartitionFilter, PartitionStatus, QueryStatus } from '../../data-set/index.ts'
import { NO_PARTITIONS, type PartitionState } from '../../state/index.ts'
import { cutTo, type Style } from '../terminal/screen.ts'
import { alignedTable, type Column, type Table } from '../terminal/table.ts'
import { count, counted, plainLine } from '../terminal/text.ts'

const MAX_CURSOR = 16

const MAX_QUERIES = 20
const MAX_ERROR = 160

export type Shown = {
  readonly all: boolean
  readonly wanted: PartitionFilter | null
  readonly style: Style
}

type Figure<Row> = {
  readonly title: string
  readonly value: (row: Row) => number
}

type StatusRows<Row extends QueryStatus> = {
  readonly partitions: () => Iterable<PartitionStatus>
  readonly queries: (wanted: PartitionFilter | undefined) => readonly Row[]
  readonly more: readonly Figure<Row>[]
}

export function* statusTable<Row extends QueryStatus>(
  { partitions, queries, more }: StatusRows<Row>,
  { all, wanted, style }: Shown,
): Generator<string> {
  if (all) {
    yield ''
    yield* alignedTable(partitionTable(partitions, wanted, style), style)
    return
  }
  const rows = queries(wanted ?? undefined)
  if (rows.length === 0) {
    if (wanted !== null) yield 'no partition is like that'
    return
  }
  const { shown, folded } = firstQueries(rows)
  yield ''
  yield* alignedTable(queryTable(shown, more, style), style)
  if (folded !== null) yield folded
}

function numberColumn<Row>(title: string, value: (row: Row) => number): Column<Row> {
  return { title, align: 'right', cell: (row) => (value(row) === 0 ? '' : count(value(row))) }
}

/** A line for each query, with why its last failed partition failed; `more` columns follow those of the states. */
function queryTable<Row extends QueryStatus>(
  rows: readonly Row[],
  more: readonly Figure<Row>[],
  style: Style,
): Table<Row> {
  return {
    columns: [
      { title: 'query', cell: ({ query }) => query },
      numberColumn<Row>('partitions', ({ partitions }) => partitions),
      numberColumn<Row>('done', ({ done }) => done),
      numberColumn<Row>('partial', ({ partial }) => partial),
      { ...numberColumn<Row>('failed', ({ failed }) => failed), colour: () => 'red' },
      numberColumn<Row>('pending', ({ pending }) => pending),
      ...(rows.some(({ pruned }) => pruned > 0) ? [numberColumn<Row>('pruned', ({ pruned }) => pruned)] : []),
      ...more.map(({ title, value }) => numberColumn<Row>(title, value)),
    ],
    rows: () => rows,
    below: ({ failed, error }) =>
      failed === 0 || error === null ? [] : [errorLine(`${error.window}: ${error.message}`, style)],
  }
}

function errorLine(message: string, style: Style): string {
  return style('red', `  ${cutTo(plainLine(message), MAX_ERROR)}`)
}

/** The first {@link MAX_QUERIES}: queries with failures, then those that have begun, then those that wait. */
function firstQueries<Row extends QueryStatus>(
  queries: readonly Row[],
): { readonly shown: readonly Row[]; readonly folded: string | null } {
  if (queries.length <= MAX_QUERIES) return { shown: queries, folded: null }
  const gravity = ({ failed, partial, pending }: Row): number =>
    failed > 0 ? 0 : partial > 0 ? 1 : pending > 0 ? 2 : 3
  const byGravity = [[], [], [], []] as Row[][]
  for (const query of queries) byGravity[gravity(query)]!.push(query)
  const sorted = byGravity.flat()
  return { shown: sorted.slice(0, MAX_QUERIES), folded: foldedLine(sorted.slice(MAX_QUERIES)) }
}

function foldedLine(queries: readonly QueryStatus[]): string {
  const sum: Record<'partitions' | PartitionState, number> = { partitions: 0, ...NO_PARTITIONS }
  for (const query of queries) {
    for (const state of Object.keys(sum) as (keyof typeof sum)[]) sum[state] += query[state]
  }
  const { partitions, ...states } = sum
  const parts = Object.entries(states).filter(([, number]) => number > 0)
  const text = parts.map(([state, number]) => `${count(number)} ${state}`).join(', ')
  const more = counted(queries.length, 'more query', 'more queries')
  return `… and ${more} with ${counted(partitions, 'partition')} (${text}); --query shows some of them, --all every partition`
}

function partitionTable(
  partitions: () => Iterable<PartitionStatus>,
  isWanted: PartitionFilter | null,
  style: Style,
): Table<PartitionStatus> {
  return {
    columns: [
      { title: 'query', cell: ({ query }) => query },
      // The key is `query/window`.
      { title: 'window', cell: ({ key, query }) => key.slice(query.length + 1) },
      {
        title: 'state',
        cell: ({ state }) => state,
        colour: ({ state }) => (state === 'failed' ? 'red' : null),
      },
      numberColumn<PartitionStatus>('rows', ({ rows }) => rows),
      numberColumn<PartitionStatus>('requests', ({ requests }) => requests),
      { title: 'next', cell: ({ next }) => (next === null ? '' : cutTo(plainLine(next), MAX_CURSOR)) },
    ],
    *rows() {
      for (const each of partitions()) if (isWanted === null || isWanted(each.query, each.state)) yield each
    },
    below: ({ error }) => (error === null ? [] : [errorLine(error, style)]),
  }
}
