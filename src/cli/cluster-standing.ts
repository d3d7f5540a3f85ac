import type { ClusterStanding, RunStanding, WorkerStanding } from '../cluster/index.ts'
import { isExportError, type Pipeline } from '../core/index.ts'
import type { SharedLines } from '../run/index.ts'
import { alignedTable, type Column } from './aligned-table.ts'
import type { Io } from './io.ts'
import { count, counted } from './quantities.ts'
import type { Style } from './style.ts'

export type Cluster = {
  readonly standing: ClusterStanding
  /** What is on record of the run that workers are at; null: they are at none. */
  readonly shared: SharedLines | null
}

/**
 * Tells what workers are at, where SPILLWAY_DATABASE_URL says that there may be any.
 * @param use gets null where it does not, or where they can't be asked
 */
export async function withCluster<T>(
  pipeline: Pipeline,
  io: Io,
  use: (cluster: Cluster | null) => Promise<T>,
): Promise<T> {
  // Loaded by those alone who have a database.
  if ((io.env.SPILLWAY_DATABASE_URL ?? '') === '' && (io.env.SPILLWAY_DATABASE_URL_FILE ?? '') === '') {
    return use(null)
  }
  const [{ withDatabase }, { linesOf, readCluster }] = await Promise.all([
    import('./cluster-database.ts'),
    import('../cluster/index.ts'),
  ])
  return withDatabase(io, { tables: false }, async (database) => {
    let cluster: Cluster
    try {
      const standing = await readCluster(database, pipeline.load.path)
      const [own] = standing.runs
      const shared = own === undefined ? null : { run: own.run, lines: linesOf(database, own.run) }
      cluster = { standing, shared }
    } catch (error) {
      if (!isExportError(error)) throw error
      io.log('warn', `what workers are at is not known: ${error.message}`)
      return use(null)
    }
    return use(cluster)
  })
}

const RUNS: readonly Column<RunStanding>[] = [
  { title: 'run', cell: ({ run }) => run },
  { title: 'status', cell: ({ status, halt }) => (halt === null ? status : `${status}: ${halt}`), least: 12 },
  { title: 'waiting', align: 'right', cell: ({ chains }) => count(chains.waiting) },
  { title: 'active', align: 'right', cell: ({ chains }) => count(chains.active) },
  { title: 'done', align: 'right', cell: ({ chains }) => count(chains.done) },
  { title: 'failed', align: 'right', cell: ({ chains }) => count(chains.failed) },
  { title: 'requests', align: 'right', cell: ({ requests }) => count(requests), isOptional: true },
]

const WORKERS: readonly Column<WorkerStanding>[] = [
  { title: 'worker', cell: ({ worker }) => worker.slice(0, 8) },
  { title: 'host', cell: ({ host, pid }) => `${host}:${pid}`, least: 8 },
  { title: 'seen', align: 'right', cell: ({ silent_s }) => `${silent_s} s ago` },
  { title: 'chains', align: 'right', cell: ({ chains, lanes }) => `${chains.length} of ${count(lanes)}` },
  {
    title: 'holds',
    cell: ({ chains }) => chains.map(({ chain }) => chain).join(' '),
    least: 6,
    isOptional: true,
  },
]

/** Runs of the data set, and workers of the database, for people. */
export function* clusterLines(
  { database, runs, workers }: ClusterStanding,
  { columns, style }: { readonly columns: number | null; readonly style: Style },
): Generator<string> {
  yield ''
  yield `${counted(workers.length, 'worker')} in ${database}${runs.length === 0 ? ', at nothing of this data set' : ''}`
  if (runs.length > 0) yield* alignedTable({ columns: RUNS, rows: () => runs }, columns, style)
  if (runs.length > 0 && workers.length > 0) yield ''
  if (workers.length > 0) yield* alignedTable({ columns: WORKERS, rows: () => workers }, columns, style)
}
