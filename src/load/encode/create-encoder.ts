import { createRequire } from 'node:module'
import { type CsvFormat, ExportError, type Format, type ParquetFormat } from '../../core/index.ts'
import type { EncodeSettings, ShardEncoder } from './encoder.ts'

type Engine<F> = (settings: EncodeSettings, format: F) => ShardEncoder

/** Loaded when there is something to write: most commands write no rows. */
const PARQUET_ENGINES: Readonly<Record<ParquetFormat['engine'], () => Promise<Engine<ParquetFormat>>>> = {
  columnar: async () => (await import('./parquet/columnar.ts')).parquetColumnar,
  'parquetjs-lite': async () => (await import('./parquet/parquetjs-lite.ts')).parquetjsLite,
}

const CSV_ENGINES: Readonly<Record<CsvFormat['engine'], () => Promise<Engine<CsvFormat>>>> = {
  columnar: async () => (await import('./csv/columnar.ts')).csvColumnar,
  'csv-stringify': async () => (await import('./csv/csv-stringify.ts')).csvStringify,
}

/** @throws ExportError `config` when the engine, or this Node.js, cannot write the format */
export async function createEncoder(settings: EncodeSettings): Promise<ShardEncoder> {
  const { format } = settings
  switch (format.kind) {
    case 'parquet':
      return (await PARQUET_ENGINES[format.engine]())(settings, format)
    case 'csv':
      return (await CSV_ENGINES[format.engine]())(settings, format)
  }
}

const PACKAGE = 'parquetjs-lite'

/** parquetjs-lite is optional, since nobody maintains it. @throws ExportError `config` when it is not installed */
export function requireEngine({ engine }: Format): void {
  if (engine !== PACKAGE) return
  try {
    createRequire(import.meta.url).resolve(PACKAGE)
  } catch (cause) {
    throw new ExportError({
      kind: 'config',
      what: `The engine ${PACKAGE} needs the package ${PACKAGE}, which is not installed`,
      where: 'load.engine',
      next: `Leave out load.engine, install spillway with its optional dependencies, or run \`npm install ${PACKAGE}\` beside it.`,
      cause,
    })
  }
}
