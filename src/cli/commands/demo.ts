import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import {
  ExportError,
  hasCode,
  type Pipeline,
  SUMMARY_PAGE_PATH,
  shellWord,
  systemClock,
} from '../../core/index.ts'
import { DataSet, queryDataSet, summarizeDataSet } from '../../data-set/index.ts'
import { startSandbox } from '../../library.ts'
import { packageFile, version } from '../../package/index.ts'
import { readPipeline } from '../../pipeline/index.ts'
import { lacksDuckdb, parseTarget } from '../../warehouse/index.ts'
import { command, flag, type Io } from '../command-line/command.ts'
import { exportPipeline } from '../export-pipeline.ts'
import { DONE } from '../terminal/exit-code.ts'
import { styleFor } from '../terminal/screen.ts'
import { untilStopped } from '../terminal/signals.ts'
import { alignedTable, resultTable } from '../terminal/table.ts'
import { shownPath } from '../terminal/text.ts'
import { loadTables } from './load.ts'

const DEMO_PIPELINE = packageFile('pipelines/demo.yaml')

const DATABASE = 'output/demo.db'
const QUESTION =
  'SELECT source_name, count(*) AS credentials FROM credentials GROUP BY source_name ORDER BY credentials DESC LIMIT 5'

async function showTable(pipeline: Pipeline, stop: AbortSignal, io: Io): Promise<void> {
  const { cwd, program, stdout } = io
  const target = parseTarget(`duckdb:${DATABASE}`, cwd)
  // Each demo makes a new data set. The table would keep the rows of the ones before.
  await writeMade(pipeline, 'unfinished')
  for (const ending of ['', '.wal']) await rm(resolve(cwd, `${DATABASE}${ending}`), { force: true })
  const file = shellWord(pipeline.file)
  await stdout.line(`\n  ${program} load ${file} --to ${target.label}`)
  const dataSet = await DataSet.of(pipeline)
  await loadTables(dataSet, target, { json: false }, stop, io)
  await writeMade(pipeline, await databaseOf(cwd))
  await stdout.line(`\n  ${program} query ${file} --in ${target.label} "${QUESTION}"`)
  const { columns, rows } = await queryDataSet(dataSet, QUESTION, { database: target.label, cwd })
  for (const line of alignedTable(resultTable(columns, rows), styleFor(false))) await stdout.line(`  ${line}`)
  await stdout.line(`\n  ${program} summary ${file}`)
  await summarizeDataSet(dataSet, 'html', { clock: systemClock, stop, onLog: io.log, version })
  await stdout.line(
    `  ${shownPath(pipeline.load.path, cwd)}/${SUMMARY_PAGE_PATH}: people, sources and kinds of hash, for a browser`,
  )
}

/** The database as the demo left it; `unfinished`: it was being made; null: there is none. */
type Database = { readonly bytes: number; readonly modifiedMs: number } | 'unfinished' | null

/** In the folder of the data set: what tells that the demo made it, and the database. No run removes it. */
const MARK = '_demo.json'

/** Marks the folder before anything is in it. @throws ExportError `config` where something is not its own */
async function requireOwn(pipeline: Pipeline, { cwd }: Io): Promise<void> {
  const { path } = pipeline.load
  const text = await readFile(join(path, MARK), 'utf8').catch(nullIfMissing)
  const names = await readdir(path).catch(nullIfMissing)
  if (text === null && names !== null && names.length > 0) throw foreign(shownPath(path, cwd))
  const made: Database = text === null ? null : JSON.parse(text).database
  const found = await databaseOf(cwd)
  if (found !== null && made !== 'unfinished' && !isDeepStrictEqual(found, made)) throw foreign(DATABASE)
  await mkdir(path, { recursive: true, mode: 0o700 })
  await writeMade(pipeline, made)
}

async function writeMade({ load }: Pipeline, database: Database): Promise<void> {
  await writeFile(join(load.path, MARK), JSON.stringify({ database }), { mode: 0o600 })
}

async function databaseOf(cwd: string): Promise<Database> {
  const found = await stat(resolve(cwd, DATABASE)).catch(nullIfMissing)
  return found === null ? null : { bytes: found.size, modifiedMs: found.mtimeMs }
}

function nullIfMissing(error: unknown): null {
  if (hasCode(error, 'ENOENT')) return null
  throw error
}

function foreign(where: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'The demo would replace what it did not make, or what was changed since',
    where,
    next: 'Move it away, or call the demo in another folder.',
  })
}

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
        await requireOwn(pipeline, io)
        io.screen.write(
          `Exporting ${pipeline.extract.queries.length} made-up domains from a sandbox in this process.\n`,
        )
        // Anew, so that there is something to do each time.
        const settings = { fresh: true, json: false, again: `${io.program} demo` }
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
