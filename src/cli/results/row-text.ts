import { stringify } from 'csv-stringify/sync'
import type { QueryStream } from '../../data-set/index.ts'
import type { Output } from '../terminal/output.ts'
import { plainJson, plainText } from '../terminal/text.ts'

export async function* jsonParts({ columns, batches }: QueryStream): AsyncGenerator<string> {
  let before = '['
  for await (const rows of batches) {
    for (const row of rows) {
      yield before + plainJson(Object.fromEntries(columns.map((name, i) => [name, row[i]])))
      before = ',\n'
    }
  }
  yield before === '[' ? '[]\n' : ']\n'
}

export async function* csvParts({ columns, batches }: QueryStream): AsyncGenerator<string> {
  yield csvText([columns])
  for await (const rows of batches) yield csvText(rows)
}

/** A terminal would interpret control characters; a file gets them as they are. */
export async function* shownOn(
  { isTerminal }: Pick<Output, 'isTerminal'>,
  parts: AsyncIterable<string>,
): AsyncGenerator<string> {
  for await (const part of parts) yield isTerminal ? plainText(part) : part
}

/** As the exports write it: null is an empty field, the empty string `""`. */
export function csvText(rows: readonly (readonly unknown[])[], delimiter = ','): string {
  return stringify(
    rows.map((row) =>
      row.map((cell) =>
        typeof cell === 'object' && cell !== null
          ? JSON.stringify(cell)
          : typeof cell === 'boolean'
            ? String(cell)
            : cell,
      ),
    ),
    { cast: { string: (text) => (text === '' ? EMPTY : text) }, delimiter, record_delimiter: '\n' },
  )
}

/** For strings only: as an option of csv-stringify it would quote null as well. */
const EMPTY = { value: '', quoted_empty: true } as const
