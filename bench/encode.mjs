/**
 * `npm run bench:encode`: processor time, peak memory and size of encoding (masked columns to row groups of 100,000
 * rows): Parquet by compression and encodings, hyparquet-writer, and the two encoders of CSV. Each contender is a
 * process of its own, and rounds alternate; figures are per million rows, the minimum of the rounds.
 *
 *   --rounds N     rounds (3)
 *   --shape NAME   pages: typical, no repeated sources, 20,000 sources … (typical)
 *   --secret NAME  masking: redact, hmac … (redact)
 *   --only TEXT    contenders whose name contains it
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import zlib from 'node:zlib'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { createEncoder, decodeRecordBatches } from '../build/parts/load.js'
import { allColumns, rowBatchOf, valueAt } from '../build/parts/rows.js'
import { createDecoder } from '../build/parts/transform.js'
import { renderItems, SHAPES } from './pages.mjs'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    shape: { type: 'string', default: 'typical' },
    secret: { type: 'string', default: 'redact' },
    only: { type: 'string', default: '' },
    contender: { type: 'string' },
  },
})

const columns = allColumns('credentials', [])
const compressions = ['none', 'snappy', 'gzip', ...(zlib.zstdCompressSync === undefined ? [] : ['zstd'])]
/** Functions that encode row groups of record batches, and return how many bytes they made. */
const CONTENDERS = {
  ...Object.fromEntries(
    compressions.flatMap((compression) =>
      ['compact', 'plain'].map((encodings) => {
        const format = { kind: 'parquet', engine: 'columnar', compression, encodings }
        return [`parquet, ${compression}, ${encodings}`, (rowGroups) => encoded(format, rowGroups)]
      }),
    ),
  ),
  'parquet by hyparquet-writer, snappy': byHyparquet,
  ...Object.fromEntries(
    ['columnar', 'csv-stringify'].map((engine) => {
      const format = { kind: 'csv', engine, compression: 'none', escapeFormulas: false }
      return [`csv, ${engine}`, (rowGroups) => encoded(format, rowGroups)]
    }),
  ),
}

if (options.contender === undefined) compare()
else console.log(JSON.stringify(await measured(CONTENDERS[options.contender])))

function compare() {
  const names = Object.keys(CONTENDERS).filter((name) => name.includes(options.only))
  const best = new Map()
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const name of names) {
      const args = ['--contender', name, '--shape', options.shape, '--secret', options.secret]
      const { stdout, stderr } = spawnSync(process.execPath, [import.meta.filename, ...args], {
        encoding: 'utf8',
      })
      if (stdout === '') throw new Error(stderr)
      const figures = JSON.parse(stdout)
      const before = best.get(name)
      if (before === undefined || figures.seconds < before.seconds) best.set(name, figures)
    }
  }
  console.log('| contender | CPU s per 1M rows | peak MB | MB per 1M rows |')
  console.log('|---|---|---|---|')
  for (const [name, { seconds, peak, megabytes }] of best)
    console.log(`| ${name} | ${seconds.toFixed(2)} | ${Math.round(peak)} | ${megabytes.toFixed(1)} |`)
}

/** Encodes twice, and measures the second time. */
async function measured(encode) {
  const { rowGroups, rows } = pages()
  await encode(rowGroups)
  const started = process.cpuUsage()
  const bytes = await encode(rowGroups)
  const { user, system } = process.cpuUsage(started)
  return {
    seconds: (user + system) / rows,
    peak: process.resourceUsage().maxRSS / 1000,
    megabytes: bytes / rows,
  }
}

/** Row groups of ten pages. */
function pages() {
  const decode = createDecoder({
    resource: 'credentials',
    columns,
    extras: [],
    order: 'asc',
    secret: options.secret,
    identity: 'keep',
    secretFacts: null,
    maskKey: Buffer.alloc(32, 1),
    suppress: null,
    onInvalid: 'quarantine',
  })
  const context = {
    query: { type: 'domain', fqdn: 'scatterholt.com', name: 'domain.scatterholt.com' },
    partition: 'domain.scatterholt.com/all',
    page: 0,
    requested: null,
    own: null,
    queryValue: 'scatterholt.com',
    since: null,
    recent: [],
    known: [],
  }
  const shape = SHAPES[options.shape]
  const rowGroups = [0, 10].map((first) =>
    Array.from({ length: 10 }, (_, page) => {
      const body = `{"items":${renderItems(first + page, shape)},"next":null}`
      return decode(Buffer.from(body), context).recordBatch
    }),
  )
  return { rowGroups, rows: 20 * (shape.items ?? 10_000) }
}

async function decoded(recordBatches) {
  const all = []
  for await (const each of decodeRecordBatches(recordBatches)) all.push(each)
  return all
}

async function encoded(format, rowGroups) {
  const encoder = await createEncoder({ format, columns, createdBy: 'bench', fileMetadata: {} })
  let bytes = 0
  for (const recordBatches of rowGroups)
    bytes += (await encoder.encode(await decoded(recordBatches))).bytes.length
  return bytes
}

async function byHyparquet(rowGroups) {
  const writer = new ByteWriter()
  const parquet = new ParquetWriter({
    writer,
    schema: [{ name: 'root', num_children: columns.length }, ...columns.map(element)],
  })
  for (const recordBatches of rowGroups) {
    const batches = (await decoded(recordBatches)).map((recordBatch) => rowBatchOf(recordBatch, columns))
    const columnData = columns.map(({ name, type }, i) => ({
      name,
      data: batches.flatMap((batch) => arrayOf(batch, i, type)),
    }))
    parquet.write({ columnData, rowGroupSize: columnData[0].data.length })
  }
  parquet.finish()
  return writer.getBytes().length
}

function arrayOf({ rows, columns }, i, type) {
  return Array.from({ length: rows }, (_, row) => {
    const value = valueAt(columns[i], row)
    return value !== null && (type === 'int64' || type === 'timestamp') ? BigInt(value) : value
  })
}

function element({ name, type, nullable }) {
  const repetition_type = nullable ? 'OPTIONAL' : 'REQUIRED'
  switch (type) {
    case 'int64':
      return { name, type: 'INT64', repetition_type }
    case 'timestamp':
      return { name, type: 'INT64', converted_type: 'TIMESTAMP_MICROS', repetition_type }
    case 'boolean':
      return { name, type: 'BOOLEAN', repetition_type }
    default:
      return { name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type }
  }
}
