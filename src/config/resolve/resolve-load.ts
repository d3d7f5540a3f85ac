import type { Format, LoadSettings } from '../../core/index.ts'
import type { Problems } from '../problems/problems.ts'
import type { PipelineFile } from '../schema/file-schema.ts'
import { resolveLocation } from './resolve-location.ts'

type LoadFile = PipelineFile['load']

export type LoadContext = { readonly cwd: string; readonly nodeVersion: string }

/** The format with the settings that go with it, where the data set lies, and permissions. */
export function resolveLoad(
  file: PipelineFile,
  columns: readonly string[],
  problems: Problems,
  { cwd, nodeVersion }: LoadContext,
): LoadSettings {
  const { load } = file
  const format =
    load.format === 'parquet' ? parquet(load, columns, nodeVersion, problems) : csv(load, problems)
  const fileMode = Number.parseInt(load.file_mode.slice(-3), 8)
  return {
    ...resolveLocation(file, problems, cwd),
    format,
    partitionBy: (['query', 'window'] as const).filter((by) => load.partition_by.includes(by)),
    shardRows: load.shard_rows,
    keep: load.keep ?? null,
    fileMode,
    // A user who may read the files may also enter the folders.
    dirMode: fileMode | ((fileMode & 0o444) >> 2),
  }
}

function parquet(
  load: LoadFile,
  columns: readonly string[],
  nodeVersion: string,
  problems: Problems,
): Format {
  const { engine, compression = 'snappy', parquet: settings } = load
  if (load.csv !== undefined) refuse('csv', 'parquet', problems)
  if (compression === 'zstd' && !hasZstd(nodeVersion)) {
    problems.add(
      ['load', 'compression'],
      `zstd needs Node 22.15 or newer, and this is ${nodeVersion}; allowed here: none | snappy | gzip`,
    )
  }
  if (engine === 'csv-stringify') {
    problems.add(
      ['load', 'engine'],
      'expected columnar | parquetjs-lite with format parquet, found "csv-stringify"',
    )
    return { kind: 'parquet', engine: 'columnar', compression, encodings: 'compact', bloomFilters: [] }
  }
  const bloomFilters = settings?.bloom_filters ?? []
  // parquetjs-lite knows no others.
  const encodings = engine === 'parquetjs-lite' ? 'plain' : (settings?.encodings ?? 'compact')
  if (engine === 'parquetjs-lite') {
    if (compression === 'zstd') {
      problems.add(
        ['load', 'compression'],
        'expected none | snappy | gzip with engine parquetjs-lite, found "zstd"',
      )
    }
    if (settings?.encodings === 'compact') {
      problems.add(
        ['load', 'parquet', 'encodings'],
        'expected plain with engine parquetjs-lite, found "compact"',
      )
    }
    if (bloomFilters.length > 0) {
      problems.add(['load', 'parquet', 'bloom_filters'], 'engine parquetjs-lite writes no bloom filters')
    }
  }
  for (const [i, column] of bloomFilters.entries()) {
    if (columns.includes(column) || problems.touched(['transform'], ['extract'])) continue
    const path = ['load', 'parquet', 'bloom_filters', i]
    problems.add(path, `expected one of ${columns.join(', ')}, found ${problems.found(path)}`)
  }
  return { kind: 'parquet', engine, compression, encodings, bloomFilters: [...new Set(bloomFilters)] }
}

function csv(load: LoadFile, problems: Problems): Format {
  const { engine, compression = 'none' } = load
  if (load.parquet !== undefined) refuse('parquet', 'csv', problems)
  if (engine === 'parquetjs-lite') {
    problems.add(
      ['load', 'engine'],
      'expected columnar | csv-stringify with format csv, found "parquetjs-lite"',
    )
  }
  if (compression === 'snappy' || compression === 'zstd') {
    problems.add(['load', 'compression'], `expected none | gzip with format csv, found "${compression}"`)
  }
  return {
    kind: 'csv',
    engine: engine === 'csv-stringify' ? engine : 'columnar',
    compression: compression === 'gzip' ? 'gzip' : 'none',
    escapeFormulas: load.csv?.escape_formulas ?? false,
  }
}

function refuse(section: 'csv' | 'parquet', format: string, problems: Problems): void {
  problems.add(['load', section], `does not go with format: ${format}`, 'key')
}

/** zlib has zstd from 22.15 on, and from 23.8 on in the line after. */
function hasZstd(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  return major >= 24 || (major === 23 && minor >= 8) || (major === 22 && minor >= 15)
}
