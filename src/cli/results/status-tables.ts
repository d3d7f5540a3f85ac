import type { PartitionStatus, QueryStatus, Wanted } from '../../run/index.ts'
import type { Style } from '../terminal/screen.ts'
import { cutTo } from '../terminal/screen.ts'
import type { Column, Table } from '../terminal/table.ts'
import { count, counted, plainLine } from '../terminal/text.ts'

const MAX_CURSOR = 16

/** As many as a screen shows; the rest is folded into one line. */
const MAX_QUERIES = 20
const MAX_ERROR = 160

/** Zeros would hide what is not. */
export function unlessZero(value: number): string {
  return value === 0 ? '' : count(value)
}

/** A line for each query, with why its last failed partition failed; `more` columns follow those of the states. */
export function queryTable<Row extends QueryStatus>(
  rows: readonly Row[],
  more: readonly Column<Row>[],
  style: Style,
): Table<Row> {
  const number = (title: string, value: (row: Row) => number): Column<Row> => ({
    title,
    align: 'right',
    cell: (row) => unlessZero(value(row)),
  })
  return {
    columns: [
      { title: 'query', cell: ({ query }) => query, least: 16 },
      number('partitions', ({ partitions }) => partitions),
      number('done', ({ done }) => done),
      number('partial', ({ partial }) => partial),
      { ...number('failed', ({ failed }) => failed), colour: () => 'red' },
      number('pending', ({ pending }) => pending),
      ...(rows.some(({ pruned }) => pruned > 0) ? [number('pruned', ({ pruned }) => pruned)] : []),
      ...more,
    ],
    rows: () => rows,
    below: ({ failed, error }) =>
      failed === 0 || error === null ? [] : [errorLine(`${error.window}: ${error.message}`, style)],
  }
}

/** Why something failed, below its line. */
function errorLine(message: string, style: Style): string {
  return style('red', `  ${cutTo(plainLine(message), MAX_ERROR)}`)
}

/**
 * Of very many queries the first that need to be looked at: those with failures, then those under way, then those
 * that wait.
 */
export function firstQueries<Row extends QueryStatus>(
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
  const sum = { partitions: 0, done: 0, partial: 0, failed: 0, pending: 0, pruned: 0 }
  for (const query of queries) {
    for (const state of Object.keys(sum) as (keyof typeof sum)[]) sum[state] += query[state]
  }
  const { partitions, ...states } = sum
  const parts = Object.entries(states).filter(([, number]) => number > 0)
  const text = parts.map(([state, number]) => `${count(number)} ${state}`).join(', ')
  const more = counted(queries.length, 'more query', 'more queries')
  return `… and ${more} with ${counted(partitions, 'partition')} (${text}); --query shows some of them, --all every partition`
}

/** A line for each partition, with why it failed. */
export function partitionTable(
  partitions: () => Iterable<PartitionStatus>,
  isWanted: Wanted | null,
  style: Style,
): Table<PartitionStatus> {
  return {
    columns: [
      { title: 'query', cell: ({ query }) => query, least: 16 },
      // What follows the name of the query in the key.
      { title: 'window', cell: ({ key, query }) => key.slice(query.length + 1) },
      {
        title: 'state',
        cell: ({ state }) => state,
        colour: ({ state }) => (state === 'failed' ? 'red' : null),
      },
      { title: 'rows', align: 'right', cell: ({ rows }) => unlessZero(rows) },
      { title: 'requests', align: 'right', cell: ({ requests }) => unlessZero(requests), isOptional: true },
      {
        title: 'next',
        cell: ({ next }) => (next === null ? '' : cutTo(plainLine(next), MAX_CURSOR)),
        isOptional: true,
      },
    ],
    *rows() {
      for (const each of partitions()) if (isWanted === null || isWanted(each.query, each.state)) yield each
    },
    below: ({ error }) => (error === null ? [] : [errorLine(error, style)]),
  }
}
