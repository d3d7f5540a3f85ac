/**
 * `npm run bench`: speed, CPU time and memory of whole exports, each a process. Spillway reads pages that are rendered
 * in advance, over HTTP on loopback, and writes files to the disk, with its default guarantees. Each round runs every
 * contender once, so that changes of the machine's speed affect all contenders. Figures are medians; ratios are taken
 * by round.
 *
 *   --against C    compares this build with the build of commit C, instead of the contenders, by pair
 *   --rounds N     rounds (3; 5 with --against)
 *   --rows N       rows (500000); small pages: a fifth
 *   --only TEXTS   contenders whose name contains one of these texts, separated by commas
 *
 * The ordinary case comes first: small pages, one chain of pages of 100 rows. Its script in Python needs requests,
 * orjson and pyarrow in `python3` (or PYTHON), and is left out where they are not installed; so is ClickHouse where
 * `npm install --no-save --prefix test/open-tables/clickhouse` was not called.
 *
 *   --compare      compares the ratios with bench/ratios.json; exit 1 if one is more than a quarter lower
 *   --write        writes bench/results.md and bench/ratios.json
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import zlib from 'node:zlib'
import { buildCommit, compareBuilds, RATIO_HEAD, ratioRow } from './against.mjs'
import { CLI, measure, median, pageServer, writePipeline } from './measure.mjs'
import { renderItems } from './pages.mjs'

const { values: options } = parseArgs({
  options: {
    against: { type: 'string' },
    rounds: { type: 'string' },
    rows: { type: 'string', default: '500000' },
    only: { type: 'string', default: '' },
    compare: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
})

const ROWS = Number(options.rows)
const ROUNDS = Number(options.rounds ?? (options.against === undefined ? 3 : 5))
const PARTITIONS = 5
const PAGE_ROWS = 10_000
const SMALL_PAGE_ROWS = 100
const PAGES = Math.ceil(ROWS / PAGE_ROWS / PARTITIONS)
const PEERS = join(import.meta.dirname, 'peers')
const CLICKHOUSE = join(import.meta.dirname, '../test/open-tables/clickhouse/node_modules/chdb')

const HEAD = '| contender | rows/s | CPU s per 1M rows | peak MB | MB per 1M rows | speed to the baseline |'
const RULE = '|---|---|---|---|---|---|'

const SMALL_PAGES = Math.ceil(ROWS / 5 / SMALL_PAGE_ROWS)
const PYTHON = process.env.PYTHON ?? 'python3'

const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'))
const servers = new Map()
try {
  await (options.against === undefined ? bench() : against(options.against))
} finally {
  for (const { stop } of servers.values()) stop()
  rmSync(folder, { recursive: true, force: true })
}

/** The server of such pages, which starts when it is first needed. */
async function serverOf(shape, pages, coding = 'identity') {
  const key = `${shape} ${coding}`
  const server = servers.get(key) ?? (await pageServer(shape, pages, coding))
  servers.set(key, server)
  return server.url
}

function typicalServer(coding) {
  return serverOf('typical', PAGES, coding)
}

function smallServer() {
  return serverOf('100-row pages', SMALL_PAGES)
}

async function bench() {
  const groups = [
    { baseline: 'small pages: fetch + JSON.parse + hyparquet-writer', contenders: smallContenders() },
    { baseline: 'DuckDB read_json, 2 threads, zstd', contenders: largeContenders() },
  ].map(({ baseline, contenders }) => ({
    baseline,
    contenders: contenders.filter(({ name }) => options.only.split(',').some((text) => name.includes(text))),
  }))
  const runs = new Map(groups.flatMap(({ contenders }) => contenders.map(({ name }) => [name, []])))
  for (let round = 1; round <= ROUNDS; round++) {
    for (const { name, run, rows } of groups.flatMap(({ contenders }) => contenders)) {
      process.stderr.write(`round ${round}: ${name}\n`)
      const figures = await run()
      runs.get(name).push({
        ...figures,
        rowsPerSecond: rows / figures.wallSeconds,
        cpuPerMillion: (figures.cpuSeconds / rows) * 1e6,
      })
    }
  }
  const lines = groups.flatMap(({ baseline, contenders }) =>
    contenders.map(({ name, rows }) => row(name, rows, runs.get(name), runs.get(baseline))),
  )
  const table = [HEAD, RULE, ...lines.map(({ text }) => text)].join('\n')
  console.log(`${machine()}\n\n${table}`)
  const ratios = Object.fromEntries(
    lines.filter(({ ratio }) => ratio !== null).map(({ name, ratio }) => [name, Number(ratio.toFixed(2))]),
  )
  if (options.write) writeResults(table, ratios)
  if (options.compare) compare(ratios)
}

async function against(name) {
  const { cli, commit } = buildCommit(name, folder)
  const small = { url: smallServer, partitions: 1 }
  const settings = {
    folder,
    url: typicalServer,
    partitions: PARTITIONS,
    small,
    rounds: ROUNDS,
    only: options.only,
  }
  const pairs = await compareBuilds(cli, settings)
  const lines = [...pairs].map(([contender, each]) => ratioRow(contender, each))
  console.log(`${machine()}\nRatios of this build to ${commit}\n\n${[RATIO_HEAD, ...lines].join('\n')}`)
}

/** 1,000 pages of 100 rows over one chain, unless there are other `--rows`. */
function smallContenders() {
  const rows = SMALL_PAGES * SMALL_PAGE_ROWS
  const script = (name, file) => ({
    name: `small pages: ${name}`,
    rows,
    run: async () => measure(join(PEERS, file), [await smallServer(), '1']),
  })
  const hasPython = spawnSync(PYTHON, ['-c', 'import requests, orjson, pyarrow']).status === 0
  return [
    spillway('small pages: spillway', {}, smallServer, 1, rows),
    script('fetch + JSON.parse + hyparquet-writer', 'small-pages.mjs'),
    ...(hasPython ? [script('requests + orjson + pyarrow', 'small-pages.py')] : []),
  ]
}

function largeContenders() {
  const zstd = typeof zlib.zstdCompressSync === 'function'
  const hasClickHouse = existsSync(CLICKHOUSE)
  return [
    spillway('spillway parquet (snappy)', {}),
    spillway('spillway parquet (gzip)', { compression: 'gzip' }),
    spillway('spillway parquet (snappy), Iceberg and Delta', { tables: 'iceberg, delta' }),
    ...(zstd ? [spillway('spillway parquet (zstd)', { compression: 'zstd' })] : []),
    spillway('spillway parquet (snappy), plain encodings', { encodings: 'plain' }),
    spillway('spillway parquet, hmac', { secret: 'hmac' }),
    spillway('spillway csv', { format: 'csv' }),
    spillway('spillway csv by csv-stringify', { format: 'csv', engine: 'csv-stringify' }),
    spillway('spillway parquet (snappy), answers in gzip', {}, () => typicalServer('gzip')),
    spillway('spillway parquet (snappy), ids that do not repeat', {}, () =>
      serverOf('all pages different', PAGES),
    ),
    duckdb('DuckDB read_json, 2 threads, zstd', 'zstd'),
    duckdb('DuckDB read_json, 2 threads, snappy', 'snappy'),
    duckdb('DuckDB read_ndjson (lines), 2 threads, zstd', 'zstd', 'lines'),
    ...(hasClickHouse ? [clickhouse('ClickHouse (lines), 2 threads, zstd')] : []),
    handWritten('fetch + zod + hyparquet-writer', 'hyparquet-writer', PAGES),
    handWritten('fetch + zod + csv-stringify', 'csv-stringify', PAGES),
    // A tenth of the rows: with all of them it would take longer than all other contenders together.
    handWritten('fetch + zod + parquetjs-lite', 'parquetjs-lite', Math.max(1, PAGES / 10)),
  ]
}

function spillway(
  name,
  settings,
  url = typicalServer,
  partitions = PARTITIONS,
  rows = PAGES * PARTITIONS * PAGE_ROWS,
) {
  const run = async () => {
    const { file, env } = writePipeline(folder, await url(), partitions, settings)
    return measure(CLI, ['run', file], env)
  }
  return { name, rows, run }
}

function duckdb(name, codec, form = 'pages') {
  return native(name, form, (files) => measure(join(PEERS, 'native-duckdb.mjs'), [files, codec, form]))
}

function clickhouse(name) {
  return native(name, 'lines', (files) => measure(join(PEERS, 'native-clickhouse.mjs'), [files]))
}

/** A contender that reads the pages from files: as they are, or an item in each line. */
function native(name, form, run) {
  const files = join(folder, form)
  const render = () => {
    renderFiles(files, form)
    return run(`${files}*.json`)
  }
  return { name, rows: PAGES * PARTITIONS * PAGE_ROWS, run: render }
}

function renderFiles(prefix, form) {
  if (existsSync(`${prefix}0000.json`)) return
  const texts = Array.from({ length: Math.min(8, PAGES) }, (_, number) => {
    const items = renderItems(number)
    if (form === 'pages') return `{"items":${items},"next":null}`
    return JSON.parse(items)
      .map((item) => `${JSON.stringify(item)}\n`)
      .join('')
  })
  for (let page = 0; page < PAGES * PARTITIONS; page++) {
    writeFileSync(`${prefix}${String(page).padStart(4, '0')}.json`, texts[(page % PAGES) % texts.length])
  }
}

function handWritten(name, writer, pages) {
  return {
    name,
    rows: pages * PARTITIONS * PAGE_ROWS,
    run: async () =>
      measure(join(PEERS, 'hand-written.mjs'), [
        await typicalServer(),
        String((PARTITIONS * pages) / PAGES),
        writer,
      ]),
  }
}

function row(name, rows, figures, baseline) {
  const valuesOf = (figure) => figures.map(figure)
  const range = (values, digits) =>
    `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)})`
  const ratio =
    baseline === undefined
      ? null
      : median(figures.map(({ rowsPerSecond }, round) => rowsPerSecond / baseline[round].rowsPerSecond))
  const cells = [
    name,
    range(
      valuesOf((f) => f.rowsPerSecond / 1000),
      0,
    ).replace(/(\d+)/g, '$1k'),
    range(
      valuesOf((f) => f.cpuPerMillion),
      2,
    ),
    range(
      valuesOf((f) => f.peakMegabytes),
      0,
    ),
    ((median(valuesOf((f) => f.megabytes)) / rows) * 1e6).toFixed(1),
    ratio === null ? '' : ratio.toFixed(2),
  ]
  return { name, ratio, text: `| ${cells.join(' | ')} |` }
}

function machine() {
  return `${cpus().length} × ${cpus()[0].model}, Node ${process.version}, ${ROWS} rows, ${ROUNDS} rounds: medians (min–max)`
}

function writeResults(table, ratios) {
  const text = `# Benchmark results

\`npm run bench -- --rounds ${ROUNDS} --rows ${ROWS} --write\`

${machine()}

${table}

Whole processes, start-up included. Spillway and the hand-written scripts receive pages over loopback HTTP from a
server in another process; DuckDB reads the same pages as files. Spillway runs with its defaults: validation,
masking, an fsync for every page. The baseline of small pages is the script with fetch, of the others DuckDB with zstd. See [the figures](README.md).
`
  writeFileSync(join(import.meta.dirname, 'results.md'), text)
  writeFileSync(join(import.meta.dirname, 'ratios.json'), `${JSON.stringify(ratios, null, 2)}\n`)
}

function compare(ratios) {
  const committed = JSON.parse(readFileSync(join(import.meta.dirname, 'ratios.json'), 'utf8'))
  for (const [name, before] of Object.entries(committed)) {
    const now = ratios[name]
    if (now === undefined || now >= before * 0.75) continue
    console.error(`${name}: ${now} times the speed of the baseline, before: ${before}`)
    process.exitCode = 1
  }
}
