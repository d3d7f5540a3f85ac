import type { Format } from '../../core/index.ts'
import { type CsvFormat, fieldText, indexesIn, readCsv, unescaped } from './csv-reader.ts'
import { openParquet } from './parquet-reader.ts'
import { damaged, type ShardReader } from './shard-reader.ts'

/** Gets the id of every row, and the kind and value of the query that found it, where those were asked for. */
type OnId = (id: number | bigint, queryType: string, queryValue: string) => void

const QUERY_COLUMNS = ['query_type', 'query_value']

/**
 * Reads the ids of a shard, and nothing that need not be read for it.
 * @param withQuery whether to read the columns `query_type` and `query_value` too; else both are empty
 * @throws ExportError `damaged` when the bytes are not what the format says, or such a column is not there
 */
export function readIds(reader: ShardReader, format: Format, withQuery: boolean, onId: OnId): Promise<void> {
  const columns = ['id', ...(withQuery ? QUERY_COLUMNS : [])]
  switch (format.kind) {
    case 'parquet':
      return parquetIds(reader, columns, onId)
    case 'csv':
      return csvIds(reader, format, columns, onId)
  }
}

async function parquetIds(reader: ShardReader, columns: readonly string[], onId: OnId): Promise<void> {
  const { rowGroups } = await openParquet(reader)
  for (const rowGroup of rowGroups) {
    const read: unknown[][] = []
    for (const name of columns) read.push((await rowGroup.column(name)).flatMap((values) => [...values]))
    const [ids = [], types, queries] = read
    for (const [row, id] of ids.entries()) {
      if (typeof id !== 'number' && typeof id !== 'bigint') throw damaged('Column id holds no integers')
      onId(id, String(types?.[row] ?? ''), String(queries?.[row] ?? ''))
    }
  }
}

function csvIds(
  reader: ShardReader,
  format: CsvFormat,
  columns: readonly string[],
  onId: OnId,
): Promise<void> {
  return readCsv(reader, format, (names) => {
    const indexes = indexesIn(names, columns)
    return (line) => {
      const [id = '', type = '', query = ''] = indexes.map((index) => fieldText(line, index) ?? '')
      // With escape_formulas a quote may stand before a minus.
      const digits = unescaped(id)
      onId(digits.length > MAX_EXACT_DIGITS ? BigInt(digits) : Number(digits), type, query)
    }
  })
}

/** Integers of so many digits are exact in a double. */
const MAX_EXACT_DIGITS = 15
