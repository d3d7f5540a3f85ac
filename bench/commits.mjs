/**
 * `npm run bench:commits`: what commits to the log of a data set cost on this disk.
 *
 *   --commits N    commits of the long run (28,800: a page a second for eight hours)
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { diskStore } from '../build/parts/disk.js'
import { beginCheckpoint, findCheckpoint, Journal } from '../build/parts/state.js'

const { values: options } = parseArgs({ options: { commits: { type: 'string', default: '28800' } } })
const LONG = Number(options.commits)
/** Pages of a shard of a million rows. */
const PAGES_OF_SHARD = 100

const HEADER = {
  kind: 'header',
  version: 5,
  pipeline: 'bench',
  data_set_id: '00000000-0000-4000-8000-000000000000',
  created_at: '2024-01-01T00:00:00.000Z',
  settings: {},
}

const folder = mkdtempSync(join(tmpdir(), 'spillway-commits-'))
try {
  console.log('| measured | |')
  console.log('|---|---|')
  for (const [what, bytes] of [
    ['2 kB', 2_000],
    ['1 MB', 1_000_000],
  ]) {
    report(`append ${what} to a file, with fsync`, `${(await appends(bytes)).toFixed(2)} ms`)
    report(`create a file of ${what}`, `${(await creates(bytes)).toFixed(2)} ms`)
  }
  report('commits of small pages a second, one at a time', (await rate(1)).toFixed(0))
  report('commits of small pages a second, four in flight', (await rate(4)).toFixed(0))
  await long()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function report(what, figure) {
  console.log(`| ${what} | ${figure} |`)
}

async function appends(bytes) {
  const store = await owned(`append-${bytes}`)
  const body = Buffer.alloc(bytes, 1)
  const path = '_state/log/0000000000000001'
  await store.create(path, [body])
  let size = bytes
  return median(async () => {
    await store.extend(path, size, [body])
    size += bytes
  })
}

async function creates(bytes) {
  const store = await owned(`create-${bytes}`)
  const body = Buffer.alloc(bytes, 1)
  let number = 0
  return median(() => store.create(`_state/log/${String(++number).padStart(16, '0')}`, [body]))
}

async function rate(inFlight) {
  const log = await openLog(`rate-${inFlight}`)
  const COMMITS = 1000
  const startedAt = performance.now()
  let left = COMMITS
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (left-- > 0) await log.append([{ kind: 'unknown', fields: { field: left } }])
    }),
  )
  const rate = (1000 * COMMITS) / (performance.now() - startedAt)
  await log.close()
  return rate
}

/** A long run: each commit has a page's rows, here few, and each hundredth page seals their shard. */
async function long() {
  const name = 'long'
  const log = await openLog(name)
  const query = 'domain.example.com'
  const window = '2024-01-01..2024-02-01'
  await log.append([
    { kind: 'run', run: 'r', started_at: HEADER.created_at, version: '0' },
    { kind: 'chain', chain: 0, query, order: 'asc', windows: null },
  ])
  const rows = Buffer.alloc(4_000, 1)
  const importedAt = { min: 1, max: 2 }
  let most = 0
  for (let page = 0; page < LONG; page++) {
    const shard = Math.floor(page / PAGES_OF_SHARD)
    const entries = []
    if (page % PAGES_OF_SHARD === 0) entries.push({ kind: 'open', shard, folder: 'credentials', part: shard })
    entries.push({
      kind: 'page',
      chain: 0,
      next: `cursor-${page}-`.padEnd(120, 'x'),
      requests: 1,
      slices: [{ window, shard, rows: 10_000, imported_at: importedAt }],
      logged: [{ shard, rows: 10_000, blob: 0 }],
    })
    await log.commit(entries, [rows])
    if (page % PAGES_OF_SHARD < PAGES_OF_SHARD - 1) continue
    const path = `credentials/part-${String(shard).padStart(5, '0')}.parquet`
    const sealed = { rows: 10_000 * PAGES_OF_SHARD, bytes: 1, sha256: 'a'.repeat(64) }
    await log.append([
      { kind: 'seal', shard, path, ...sealed, partitions: [`${query}/${window}`], imported_at: importedAt },
    ])
    most = Math.max(most, readdirSync(join(folder, name, '_state/log')).length)
  }
  const startedAt = performance.now()
  await findCheckpoint(diskStore(at(name)))
  const seconds = (performance.now() - startedAt) / 1000
  report(`files in the log during ${LONG.toLocaleString('en-US')} pages, at most`, most)
  report(`reading the state after them, as a resume does`, `${seconds.toFixed(2)} s`)
  await log.close()
  report('files after the run', readdirSync(join(folder, name, '_state/log')).length)
}

function at(name) {
  return { root: join(folder, name), fileMode: 0o600, dirMode: 0o700 }
}

function owned(name) {
  return diskStore(at(name)).own('0123456789ab')
}

async function openLog(name) {
  const store = await owned(name)
  await beginCheckpoint(store, HEADER)
  return Journal.open(store, await findCheckpoint(store))
}

async function median(work) {
  const times = []
  for (let i = 0; i < 200; i++) {
    const startedAt = performance.now()
    await work()
    times.push(performance.now() - startedAt)
  }
  return times.sort((a, b) => a - b)[100]
}
