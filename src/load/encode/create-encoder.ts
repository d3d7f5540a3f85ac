import { csvColumnar } from './csv/columnar.ts'
import { csvStringify } from './csv/csv-stringify.ts'
import type { EncodeSettings, ShardEncoder } from './encoder.ts'
import { parquetColumnar } from './parquet/columnar.ts'
import { parquetjsLite } from './parquet/parquetjs-lite.ts'

const PARQUET_ENGINES = { columnar: parquetColumnar, 'parquetjs-lite': parquetjsLite }
const CSV_ENGINES = { columnar: csvColumnar, 'csv-stringify': csvStringify }

/** @throws ExportError `config` when the engine, or this Node.js, cannot write the format */
export function createEncoder(settings: EncodeSettings): ShardEncoder {
  const { format } = settings
  switch (format.kind) {
    case 'parquet':
      return PARQUET_ENGINES[format.engine](settings, format)
    case 'csv':
      return CSV_ENGINES[format.engine](settings, format)
  }
}
