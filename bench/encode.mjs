/**
 * `npm run bench:encode`: CPU time of encoding (masked columns to row groups of 100,000 rows) and size of the result,
 * by compression and encodings. One process runs all contenders alternately. Figures are CPU seconds per million rows,
 * the minimum of the rounds.
 *
 *   --rounds N     rounds (5)
 *   --shape NAME   pages: typical, no repeated sources, 20,000 sources … (typical)
 */
import { parseArgs } from 'node:util'
import zlib from 'node:zlib'
import { allColumns } from '../build/parts/core.js'
import { createEncoder, decodeRecordBatches } from '../build/parts/load.js'
import { createDecoder } from '../build/parts/transform.js'
import { renderItems, SHAPES } from './pages.mjs'

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, shape: { type: 'string', default: 'typical' } },
})

const columns = allColumns('credentials', [])
const decode = createDecoder({
  resource: 'credentials',
  columns,
  order: 'asc',
  secret: 'redact',
  identity: 'keep',
  maskKey: null,
  suppress: [],
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
}

/** Row groups of ten pages. */
const rowGroups = [0, 10].map((first) =>
  Array.from({ length: 10 }, (_, page) => {
    const body = `{"items":${renderItems(first + page, SHAPES[options.shape])},"next":null}`
    return decode(Buffer.from(body), context).recordBatch
  }),
)
const rows = 20 * (SHAPES[options.shape].items ?? 10_000)

const compressions = ['none', 'snappy', 'gzip', ...(zlib.zstdCompressSync === undefined ? [] : ['zstd'])]
const contenders = compressions.flatMap((compression) =>
  ['compact', 'plain'].map((encodings) => {
    const format = { kind: 'parquet', engine: 'columnar', compression, encodings, bloomFilters: [] }
    const encoder = createEncoder({ format, columns, createdBy: 'bench', fileMetadata: {} })
    return { compression, encodings, encoder, bytes: 0, seconds: Number.POSITIVE_INFINITY }
  }),
)

for (let round = 0; round <= Number(options.rounds); round++) {
  for (const contender of contenders) {
    const started = process.cpuUsage()
    contender.bytes = 0
    for (const recordBatches of rowGroups)
      contender.bytes += (await contender.encoder.encode(decodeRecordBatches(recordBatches))).bytes.length
    const { user, system } = process.cpuUsage(started)
    // The first round warms up.
    if (round > 0) contender.seconds = Math.min(contender.seconds, (user + system) / 1e6)
  }
}

console.log('| compression | encodings | CPU s per 1M rows | MB per 1M rows | to compact |')
console.log('|---|---|---|---|---|')
for (const { compression, encodings, bytes, seconds } of contenders) {
  const compact = contenders.find((other) => other.compression === compression)
  const cells = [
    compression,
    encodings,
    ((seconds / rows) * 1e6).toFixed(2),
    (bytes / rows).toFixed(1),
    `${(seconds / compact.seconds).toFixed(2)} time, ${(bytes / compact.bytes).toFixed(2)} size`,
  ]
  console.log(`| ${cells.join(' | ')} |`)
}
