import type { PartitionStatus, Wanted } from '../run/index.ts'
import type { Table } from './aligned-table.ts'
import { plainLine } from './plain-text.ts'
import { errorLine, unlessZero } from './query-table.ts'
import type { Style } from './style.ts'
import { cutTo } from './width.ts'

const MAX_CURSOR = 16

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
