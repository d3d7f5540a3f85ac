/**
 * `npm run bench:shapes`: whole exports of pages of every shape, compared with a script of fetch, JSON.parse, zod and
 * hyparquet-writer (no retries, no checkpoint). Wall and CPU seconds include start-up. The ratio is script/Spillway:
 * above 1, Spillway is faster. Figures are medians.
 *
 *   --rounds N     rounds (3)
 *   --only TEXT    cases whose name contains the text
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CLI, measure, median, pageServer, writePipeline } from './measure.mjs'
import { SHAPES } from './pages.mjs'

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, only: { type: 'string', default: '' } },
})
const SCRIPT = join(import.meta.dirname, 'peers/hand-written.mjs')

const LARGE_PAGES = [
  'typical',
  'no repeated sources',
  '20,000 sources',
  'spaced JSON',
  'escaped JSON',
  'non-Latin text',
]

/** Shape of the pages, partitions, pages per partition, and settings of the pipeline. */
const CASES = {
  ...Object.fromEntries(LARGE_PAGES.map((shape) => [shape, { shape, partitions: 4, pages: 8 }])),
  '64 kB secrets': { shape: '64 kB secrets', partitions: 4, pages: 10 },
  '50-row pages': { shape: '50-row pages', partitions: 4, pages: 400 },
  '100,000-row pages of 70 MB': { shape: '100,000-row pages', partitions: 2, pages: 3 },
  '2,000 domains with 3 rows each, a folder each': { shape: '3-row pages', partitions: 2000, pages: 1 },
  '20,000 domains with 3 rows each, in one folder': {
    shape: '3-row pages',
    partitions: 20_000,
    pages: 1,
    settings: { partitionBy: '[]' },
  },
}

console.log(
  '| pages | rows | Spillway s | CPU s | peak MB | script s | CPU s | peak MB | script/Spillway, s | CPU |',
)
console.log('|---|---|---|---|---|---|---|---|---|---|')
for (const [name, { shape, partitions, pages, settings = {} }] of Object.entries(CASES)) {
  if (!name.includes(options.only)) continue
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'))
  const server = await pageServer(shape, pages)
  try {
    const { file, env } = writePipeline(folder, server.url, partitions, settings)
    const [spillwayRuns, scriptRuns] = [[], []]
    for (let round = 0; round < Number(options.rounds); round++) {
      spillwayRuns.push(await measure(CLI, ['run', file, '--no-progress'], env))
      scriptRuns.push(await measure(SCRIPT, [server.url, String(partitions), 'hyparquet-writer']))
    }
    const rows = partitions * pages * (SHAPES[shape].items ?? 10_000)
    const [spillway, script] = [spillwayRuns, scriptRuns].map((runs) =>
      ['wallSeconds', 'cpuSeconds', 'peakMegabytes'].map((figure) => median(runs.map((run) => run[figure]))),
    )
    const cells = [spillway, script].flatMap(([wall, cpu, peak]) => [
      wall.toFixed(2),
      cpu.toFixed(2),
      peak.toFixed(0),
    ])
    const ratios = [script[0] / spillway[0], script[1] / spillway[1]].map((ratio) => ratio.toFixed(2))
    console.log(`| ${[name, rows.toLocaleString('en'), ...cells, ...ratios].join(' | ')} |`)
  } finally {
    server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
