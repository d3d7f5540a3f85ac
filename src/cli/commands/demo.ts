import { rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Pipeline, SUMMARY_PAGE_PATH, shellWord, systemClock } from '../../core/index.ts'
import { queryPipeline, summarizeDataSet } from '../../data-set/index.ts'
import { packageFile, version } from '../../package/index.ts'
import { readPipeline } from '../../pipeline/index.ts'
import { startSandbox } from '../../sandbox/index.ts'
import { lacksDuckdb, parseTarget } from '../../warehouse/index.ts'
import { command, flag, type Io } from '../command-line/command.ts'
import { DONE } from '../terminal/exit-code.ts'
import { styleFor } from '../terminal/screen.ts'
import { untilStopped } from '../terminal/signals.ts'
import { alignedTable, resultTable } from '../terminal/table.ts'
import { shownPath } from '../terminal/text.ts'
import { exportPipeline } from '../work/export-pipeline.ts'
import { loadTables, PLAIN_LOAD } from '../work/load-tables.ts'

const DEMO_PIPELINE = packageFile('pipelines/demo.yaml')

const DATABASE = 'output/demo.db'
const QUESTION =
  'SELECT source_name, count(*) AS credentials FROM credentials GROUP BY source_name ORDER BY credentials DESC LIMIT 5'

/** Loads the files into a table and queries it; prints the commands. */
async function showTable(pipeline: Pipeline, stop: AbortSignal, io: Io): Promise<void> {
  const { cwd, program, stdout } = io
  const target = parseTarget(`duckdb:${DATABASE}`, cwd)
  // Each demo makes a new data set. The table would keep the rows of the ones before.
  for (const ending of ['', '.wal']) await rm(resolve(cwd, `${DATABASE}${ending}`), { force: true })
  const file = shellWord(pipeline.file)
  await stdout.line(`\n  ${program} load ${file} --to ${target.label}`)
  await loadTables({ pipeline, planned: pipeline }, target, PLAIN_LOAD, stop, io)
  await stdout.line(`\n  ${program} query ${file} --in ${target.label} "${QUESTION}"`)
  const { columns, rows } = await queryPipeline(pipeline, QUESTION, { database: target.label, cwd })
  for (const line of alignedTable(resultTable(columns, rows), 78, styleFor(false)))
    await stdout.line(`  ${line}`)
  await stdout.line(`\n  ${program} summary ${file}`)
  const warn = (message: string): void => void io.screen.write(`${message}\n`)
  await summarizeDataSet(pipeline, { clock: systemClock, stop, version, format: 'html', warn })
  await stdout.line(
    `  ${shownPath(pipeline.load.path, cwd)}/${SUMMARY_PAGE_PATH}: people, sources and kinds of hash, for a browser`,
  )
}

/** `npm run demo`: the demo pipeline against a sandbox in the same process. No token, no network. */
export const demo = command({
  flags: { 'no-progress': flag('No progress lines') },
  examples: [
    ['$0 demo', 'Made-up credentials into output/demo, and a table of them'],
    ['$0 demo --no-progress', 'The same for a log'],
  ],
  async run(_args, io) {
    return untilStopped(io, async (signals) => {
      // The months of the demo pipeline, 300,000 credentials in all; a domain that is named more often has more.
      const sandbox = await startSandbox({
        domains: ['scatterholt.com', 'brambleworth.org', 'quillmere.net', 'tarnhollow.io'].flatMap(
          (domain, i) => new Array<string>(4 - i).fill(domain),
        ),
        records: 30_000,
        from: '2024-01-01',
        until: '2024-07-01',
        requestsPerSecond: 0,
      })
      try {
        const env = {
          ...io.env,
          SPILLWAY_BASE_URL: sandbox.baseUrl,
          SPILLWAY_TOKEN: sandbox.token,
          // Slow enough to be watched.
          SPILLWAY_REQUESTS_PER_SECOND: '10',
        }
        const file = shownPath(DEMO_PIPELINE, io.cwd)
        const pipeline = await readPipeline(file, { env, cwd: io.cwd })
        io.screen.write(
          `Exporting ${pipeline.extract.queries.length} made-up domains from a sandbox in this process.\n`,
        )
        const settings = {
          // So that there is something to do each time.
          fresh: true,
          json: false,
          again: `${io.program} demo`,
        }
        const code = await exportPipeline(pipeline, settings, signals, { ...io, env })
        if (code !== DONE) return code
        try {
          await showTable(pipeline, signals.stop, io)
        } catch (error) {
          if (!lacksDuckdb(error)) throw error
          await io.stdout.line('  (needs DuckDB, which was left out when spillway was installed)')
        }
        return code
      } finally {
        await sandbox.close()
      }
    })
  },
})
