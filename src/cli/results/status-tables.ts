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

/** @param more figures of a query besides its states */
export function* statusTable(
  partitions: () => Iterable<PartitionStatus>,
  queries: (wanted: PartitionFilter | undefined) => readonly QueryStatus[],
  more: readonly ('rows' | 'requests')[],
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
  const sorted = rows.length <= MAX_QUERIES ? rows : gravestFirst(rows)
  yield ''
  yield* alignedTable(queryTable(sorted.slice(0, MAX_QUERIES), more, style), style)
  if (rows.length > MAX_QUERIES) yield foldedLine(sorted.slice(MAX_QUERIES))
}

/** A line for each query, with why its last failed partition failed. */
function queryTable(
  rows: readonly QueryStatus[],
  more: readonly ('rows' | 'requests')[],
  style: Style,
): Table<QueryStatus> {
  const pruned = rows.some(({ pruned }) => pruned > 0) ? (['pruned'] as const) : []
  const figures = ['partitions', 'done', 'partial', 'failed', 'pending', ...pruned, ...more] as const
  return {
    columns: [
      { title: 'query', cell: ({ query }) => query },
      ...figures.map((figure) => figureColumn(figure)),
    ],
    rows: () => rows,
    below: ({ failed, error }) =>
      failed === 0 || error === null ? [] : [errorLine(`${error.window}: ${error.message}`, style)],
  }
}

function figureColumn<Name extends string>(title: Name): Column<Readonly<Record<Name, number>>> {
  return {
    title,
    align: 'right',
    cell: (row) => (row[title] === 0 ? '' : count(row[title])),
    colour: () => (title === 'failed' ? 'red' : null),
  }
}

function errorLine(message: string, style: Style): string {
  return style('red', `  ${cutTo(plainLine(message), MAX_ERROR)}`)
}

/** Queries with failures, then those that have begun, then those that wait. */
function gravestFirst(queries: readonly QueryStatus[]): readonly QueryStatus[] {
  const gravity = ({ failed, partial, pending }: QueryStatus): number =>
    failed > 0 ? 0 : partial > 0 ? 1 : pending > 0 ? 2 : 3
  return queries.toSorted((one, other) => gravity(one) - gravity(other))
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
      figureColumn('rows'),
      figureColumn('requests'),
      { title: 'next', cell: ({ next }) => (next === null ? '' : cutTo(plainLine(next), MAX_CURSOR)) },
    ],
    *rows() {
      for (const each of partitions()) if (isWanted === null || isWanted(each.query, each.state)) yield each
    },
    below: ({ error }) => (error === null ? [] : [errorLine(error, style)]),
  }
}
