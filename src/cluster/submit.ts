import { createHash, randomUUID } from 'node:crypto'
import type { PoolClient } from 'pg'
import { ExportError, isExportError, type NamedPipeline, type Pipeline } from '../core/index.ts'
import { type Begun, beginSharedRun, type RunOptions, readSharedRunOf, testToken } from '../run/index.ts'
import type { Database } from './database.ts'
import { wake } from './wakes.ts'

export type Submitted = {
  readonly run: string
  readonly organization: string
  /** `begun` now, `resumed` where it stopped, or `there` already. */
  readonly how: 'begun' | 'resumed' | 'there'
  readonly chains: number
  readonly partitions: number | null
}

/** What a run is, for those who carry it out. */
export type Definition = {
  readonly pipeline: NamedPipeline
  readonly allowPlaintext: boolean
  readonly plannedAtMs: number
}

/**
 * Plans a pipeline and puts its chains where workers find them. What is there already is gone on with, and nothing comes
 * twice.
 * @throws ExportError `config` when another version of the pipeline is at work there; `target` when the database is away
 */
export async function submitPipeline(
  pipeline: Pipeline,
  database: Database,
  options: RunOptions,
): Promise<Submitted> {
  const digest = digestOf(pipeline)
  const found = await liveRun(database, pipeline)
  if (found !== null) return goOn(database, found, digest, pipeline)
  const organization = await organizationOf(pipeline, options)
  for (let tries = 1; ; tries++) {
    try {
      return await begin(pipeline, { organization, digest }, database, options)
    } catch (error) {
      // Somebody else may be submitting it in the same moment.
      if (!isExportError(error, 'locked', 'target')) throw error
      const rival = await liveRun(database, pipeline)
      if (rival !== null) return goOn(database, rival, digest, pipeline)
      if (error.kind !== 'locked' || tries === RIVAL_TRIES) throw error
      await options.clock.sleep(RIVAL_MS, options.stop)
    }
  }
}

// As long as it takes to plan a million chains.
const RIVAL_TRIES = 15
const RIVAL_MS = 1_000

async function begin(
  pipeline: Pipeline,
  { organization, digest }: { readonly organization: string; readonly digest: string },
  database: Database,
  options: RunOptions,
): Promise<Submitted> {
  const run = randomUUID()
  const shared = { run, submitted_at: new Date(options.clock.now()).toISOString(), database: database.label }
  const { allowPlaintext } = options
  let chains = 0
  let partitions = 0
  const over = await deadRun(database, pipeline)
  await beginSharedRun(pipeline, { shared, over }, options, async (begun) => {
    partitions = begun.partitions.total
    chains = await database.transaction((client) =>
      insert(client, { run, digest, organization, allowPlaintext }, begun),
    )
  })
  await wake(database)
  return { run, organization, how: 'begun', chains, partitions }
}

type LiveRun = {
  readonly run: string
  readonly status: string
  readonly digest: string
  readonly organization: string
  readonly chains: number
}

async function liveRun(database: Database, { load }: Pipeline): Promise<LiveRun | null> {
  const [found] = await database.query(
    `SELECT run, status, digest, organization, (waiting + active + done + failed)::integer AS chains
     FROM runs WHERE data_set = $1 AND status <> 'ended'`,
    [load.path],
  )
  return (found as LiveRun | undefined) ?? null
}

async function goOn(
  database: Database,
  { run, status, digest, organization, chains }: LiveRun,
  own: string,
  { service, extract, load }: Pipeline,
): Promise<Submitted> {
  if (digest !== own) {
    throw new ExportError(
      'config',
      'Another version of this pipeline is at work on the data set',
      load.pathAsGiven,
      'Wait for its end (`status` shows it), or submit the pipeline as it was.',
    )
  }
  const common = { run, organization, chains, partitions: null }
  if (status !== 'stopped') return { ...common, how: 'there' }
  await database.transaction(async (client) => {
    const { rowCount } = await client.query(
      `UPDATE runs SET status = 'active', halt = NULL, finisher = NULL, outcome = NULL, finished_at = NULL,
         waiting = waiting + failed, failed = 0, lanes = $2, max_requests = $3, min_searches_remaining = $4,
         monthly_searches = $5, definition = jsonb_set(definition, '{pipeline,service}', $6),
         spent_before = sent(run)
       WHERE run = $1 AND status = 'stopped'`,
      [
        run,
        extract.concurrency,
        extract.maxRequests,
        extract.minSearchesRemaining,
        extract.monthlySearches,
        JSON.stringify(service),
      ],
    )
    if (rowCount === 0) return
    await client.query(
      `UPDATE chains SET state = 'waiting', attempts = 0, not_before = '-infinity'
       WHERE run = $1 AND (state = 'failed' OR (state = 'waiting' AND (attempts > 0 OR not_before > '-infinity')))`,
      [run],
    )
  })
  await wake(database)
  return { ...common, how: 'resumed' }
}

/** Chains of one statement: a million of them are a few hundred statements. */
const CHAINS_AT_ONCE = 5_000

async function insert(
  client: PoolClient,
  {
    run,
    digest,
    organization,
    allowPlaintext,
  }: { run: string; digest: string; organization: string; allowPlaintext: boolean },
  { pipeline, chains, months, plannedAtMs }: Begun,
): Promise<number> {
  const { extract, load } = pipeline
  const definition: Definition = { pipeline, allowPlaintext, plannedAtMs }
  await client.query(`INSERT INTO organizations (organization) VALUES ($1) ON CONFLICT DO NOTHING`, [
    organization,
  ])
  await client.query(
    `INSERT INTO tiers (organization, tier) VALUES ($1, 'search'), ($1, 'basic') ON CONFLICT DO NOTHING`,
    [organization],
  )
  await client.query(
    `INSERT INTO runs (run, data_set, pipeline, organization, definition, digest, lanes, max_requests,
       min_searches_remaining, monthly_searches, months, waiting)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0)`,
    [
      run,
      load.path,
      pipeline.name,
      organization,
      JSON.stringify(definition),
      digest,
      extract.concurrency,
      extract.maxRequests,
      extract.minSearchesRemaining,
      extract.monthlySearches,
      JSON.stringify(Object.fromEntries(months)),
    ],
  )
  const places = new Map(extract.queries.map(({ name }, place) => [name, place]))
  let count = 0
  let batch: { queries: number[]; bounds: (string | null)[] } = { queries: [], bounds: [] }
  const put = async (): Promise<void> => {
    await client.query(
      `INSERT INTO chains (run, chain, query, bounds)
       SELECT $1, $2 + place - 1, query, bounds
       FROM unnest($3::integer[], $4::text[]) WITH ORDINALITY AS t (query, bounds, place)`,
      [run, count, batch.queries, batch.bounds],
    )
    count += batch.queries.length
    batch = { queries: [], bounds: [] }
  }
  for (const { query, windows } of chains) {
    batch.queries.push(places.get(query.name)!)
    batch.bounds.push(windows.bounds === null ? null : JSON.stringify([...windows.bounds]))
    if (batch.queries.length === CHAINS_AT_ONCE) await put()
  }
  await put()
  await client.query('UPDATE runs SET waiting = $2 WHERE run = $1', [run, count])
  return count
}

/**
 * A data set may still be given to a run of this database that is over, or that never came to be: a crash came between.
 * @returns its name; null: none
 */
async function deadRun(database: Database, pipeline: Pipeline): Promise<string | null> {
  const shared = await readSharedRunOf(pipeline)
  if (shared === null || shared.database !== database.label) return null
  const [alive] = await database.query(`SELECT 1 FROM runs WHERE run::text = $1 AND status <> 'ended'`, [
    shared.run,
  ])
  return alive === undefined ? shared.run : null
}

/** Whatever changes what is exported, or into what. How fast, at what cost and from which file changes neither. */
function digestOf({ name, service: { baseUrl, searchPath }, extract, transform, load }: Pipeline): string {
  const { concurrency: _, maxRequests: _1, monthlySearches: _2, minSearchesRemaining: _3, ...asked } = extract
  const parts = [name, baseUrl, searchPath, asked, transform, load]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/**
 * Whose pace and quota a pipeline shares: the name that the file gives, or what the service says of the token; where
 * neither tells, everybody at that address is taken for one.
 */
async function organizationOf({ service }: Pipeline, options: RunOptions): Promise<string> {
  if (service.organization !== null) return service.organization
  const { clock, readSecret, stop, observer } = options
  const { host } = new URL(service.baseUrl)
  try {
    const { info } = await testToken(service, { clock, readSecret, stop, log: observer.log })
    if (info?.organizationId != null) return `${host}/organization-${info.organizationId}`
  } catch (error) {
    // A machine that submits need not have the token.
    if (!isExportError(error, 'config', 'transient', 'refused', 'data')) throw error
  }
  observer.log('info', 'nothing tells which organization this is; it shares the pace of all at its address', {
    organization: host,
  })
  return host
}
