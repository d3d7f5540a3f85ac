import { type Int64, type Pipeline, parseWindow, type Query, type Window } from '../../core/index.ts'
import { nameQuery } from '../../pipeline/index.ts'
import { type ColumnSpec, columnsOf, type RowBatch } from '../../rows/index.ts'
import { splitPath } from '../../state/index.ts'
import { valuesOf } from '../rewriting.ts'
import type { People } from './people.ts'

/** What rows tell of their partition, by the columns below; null: the column is not exported. */
type RowOrigin = readonly [queryType: string | null, queryValue: string | null, importedAt: Int64 | null]

const ORIGIN_COLUMNS = ['query_type', 'query_value', 'imported_at']

export function countedColumns(pipeline: Pipeline): readonly ColumnSpec[] {
  return columnsOf(pipeline, ['identity_name', ...ORIGIN_COLUMNS])
}

/** Whether a row is of people; then it is counted as removed. */
export function countingRows(
  batch: RowBatch,
  people: People,
  removed: RemovedRows,
): (row: number) => boolean {
  const identity = valuesOf(batch, 'identity_name')
  const origin = ORIGIN_COLUMNS.map((name) => valuesOf(batch, name))
  return (row) => {
    const isTheirs = people.has(identity(row))
    if (isTheirs) removed.add(origin.map((value) => value(row)) as unknown as RowOrigin)
    return isTheirs
  }
}

/** Where query and time do not tell a row's partition, another of its shard is counted: sums stay exact. */
export class RemovedRows {
  readonly counts = new Map<string, number>()
  readonly #partitions: readonly {
    readonly key: string
    readonly query: string
    readonly window: Window | null
  }[]
  readonly #rowsOf: (key: string) => number

  constructor(partitions: Iterable<string>, rowsOf: (key: string) => number) {
    this.#partitions = [...partitions].map((key) => {
      const [query, window] = splitPath(key)
      return { key, query, window: parseWindow(window) }
    })
    this.#rowsOf = rowsOf
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, rows) => sum + rows, 0)
  }

  add([queryType, queryValue, importedAt]: RowOrigin): void {
    const name =
      queryType === null || queryValue === null
        ? null
        : nameQuery({ type: queryType } as Query, queryValue).name
    let best = { key: this.#partitions[0]!.key, fit: -1 }
    for (const { key, query, window } of this.#partitions) {
      if (this.#rowsOf(key) <= (this.counts.get(key) ?? 0)) continue
      const isItsTime =
        importedAt === null || window === null || (importedAt >= window.from && importedAt < window.until)
      const isItsType = queryType !== null && query.startsWith(`${queryType}.`)
      const fit = (isItsTime ? 4 : 0) + (query === name ? 2 : isItsType ? 1 : 0)
      if (fit > best.fit) best = { key, fit }
    }
    this.counts.set(best.key, (this.counts.get(best.key) ?? 0) + 1)
  }
}
