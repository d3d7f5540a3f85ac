import type { Database } from './database.ts'

/** A run that workers are at, or that stopped. */
export type RunStanding = {
  readonly run: string
  readonly pipeline: string
  readonly data_set: string
  readonly organization: string
  readonly status: 'active' | 'ending' | 'stopped'
  readonly submitted_at: string
  readonly chains: {
    readonly waiting: number
    readonly active: number
    readonly done: number
    readonly failed: number
  }
  /** Sent so far. */
  readonly requests: number
  /** Why no chain is begun any more; null: nothing is in the way. */
  readonly halt: string | null
}

export type WorkerStanding = {
  readonly worker: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly lanes: number
  /** Seconds since it was seen; its chains are free again after nine. */
  readonly silent_s: number
  readonly chains: readonly { readonly run: string; readonly chain: number; readonly fence: number }[]
}

export type ClusterStanding = {
  readonly database: string
  readonly runs: readonly RunStanding[]
  readonly workers: readonly WorkerStanding[]
}

// Of a worker with a thousand lanes nobody reads more.
const MAX_CHAINS = 100

/** @param dataSet only runs of this one; null: all */
export async function readCluster(database: Database, dataSet: string | null): Promise<ClusterStanding> {
  const runs = await database.query(
    `SELECT run, pipeline, data_set, organization, status, submitted_at, waiting, active, done, failed, halt,
       sent(run)::float8 AS requests
     FROM runs WHERE status <> 'ended' AND ($1::text IS NULL OR data_set = $1) ORDER BY submitted_at`,
    [dataSet],
  )
  const workers = await database.query(
    `SELECT worker, host, pid, version, lanes,
       extract(epoch FROM clock_timestamp() - seen_at)::float8 AS silent_s,
       coalesce((
         SELECT jsonb_agg(jsonb_build_object('run', run, 'chain', chain, 'fence', fence))
         FROM (SELECT run, chain, fence FROM chains WHERE chains.worker = workers.worker AND state = 'active'
               ORDER BY run, chain LIMIT ${MAX_CHAINS}) AS held
       ), '[]') AS chains
     FROM workers WHERE seen_at > clock_timestamp() - interval '10 minutes' ORDER BY started_at`,
  )
  return {
    database: database.label,
    runs: runs.map((row) => ({
      run: String(row.run),
      pipeline: String(row.pipeline),
      data_set: String(row.data_set),
      organization: String(row.organization),
      status: row.status as RunStanding['status'],
      submitted_at: (row.submitted_at as Date).toISOString(),
      chains: {
        waiting: Number(row.waiting),
        active: Number(row.active),
        done: Number(row.done),
        failed: Number(row.failed),
      },
      requests: Number(row.requests),
      halt: row.halt === null ? null : (row.halt as { what: string }).what,
    })),
    workers: workers.map((row) => ({
      worker: String(row.worker),
      host: String(row.host),
      pid: Number(row.pid),
      version: String(row.version),
      lanes: Number(row.lanes),
      silent_s: Math.max(0, Math.round(Number(row.silent_s) * 10) / 10),
      chains: row.chains as WorkerStanding['chains'],
    })),
  }
}
