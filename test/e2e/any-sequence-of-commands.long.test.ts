import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readPipeline, runPipeline } from '../../src/index.ts'
import { runOptions } from '../../src/run-options.ts'
import { copyAsKilled } from '../support/copy-as-killed.ts'
import { carryOutHere } from '../support/in-this-process.ts'
import { quarantineOf } from '../support/quarantine.ts'
import { shardPaths, sql } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { startSandbox } from '../support/sandbox.ts'
import { times } from '../support/thorough.ts'
import { PIPELINE, type Workspace, workspaceFor } from '../support/workspace.ts'
import { ExportModel, keyOf, type ModelRow, rowsOfDomains, rowsOfFeeds } from './support/export-model.ts'

/*
 * Commands may follow each other in any order: runs, with a budget or killed; partitions exported anew, pruned rows,
 * forgotten people, repairs, a changed pipeline, damaged files. After each command:
 * - no row is lost, doubled or invented; no row comes back that was pruned or forgotten; no path of a shard is used twice;
 * - unless the command was killed, manifest, files and open tables name the same shards and rows;
 * - after a complete run no row is missing, `verify` finds the export complete and in order, and the manifest counts
 *   the items in quarantine.
 */

/** Other sequences: FAULT_SEED=<number>; more of them: FAULT_SEQUENCES=<number> or FAULT_ALL=1. */
const SEQUENCES = Number(process.env.FAULT_SEQUENCES ?? times(4, 300))
const SEED = Number(process.env.FAULT_SEED ?? 20_261_125)

const DOMAINS = ['scatterholt.com', 'quillmere.net', 'tarnhollow.io']
const IDENTIFIERS = [1, 2]
const DAY_MS = 86_400_000
const BEGIN = Date.parse('2024-01-01')

/** Chooses one of the things that are there when the command begins. */
const choice = fc.nat({ max: 9999 })
const requests = fc.integer({ min: 1, max: 6 })
/** The log event at which a run is killed. */
const event = fc.integer({ min: 1, max: 40 })
const month = fc.integer({ min: 1, max: 9 })

const perhaps = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null, freq: 2 })
const redo = fc.record({ choice, month })

const doing = <const Name extends string, More extends object>(
  weight: number,
  name: Name,
  more: fc.Arbitrary<More>,
) => ({ weight, arbitrary: more.map((given) => ({ do: name, ...given })) })

const command = fc.oneof(
  doing(4, 'run', fc.record({ maxRequests: perhaps(requests) })),
  doing(3, 'kill', fc.record({ event, redo: perhaps(redo) })),
  doing(2, 'redo', fc.record({ redo, maxRequests: perhaps(requests) })),
  // Later months may not be over on the first day of a feed, so that more of their rows come.
  doing(2, 'prune', fc.record({ month: fc.integer({ min: 2, max: 4 }) })),
  doing(2, 'forget', fc.record({ choice })),
  doing(
    3,
    'lose-a-shard',
    fc.record({ choice, isCut: fc.boolean(), next: fc.constantFrom('repair', 'run') }),
  ),
  doing(1, 'damage-a-commit', fc.record({ choice, at: fc.double({ min: 0.6, max: 0.999, noNaN: true }) })),
  doing(
    2,
    'change',
    fc.record({
      days: fc.constantFrom(0, 3, 20, 60),
      months: fc.integer({ min: 0, max: 2 }),
      domains: fc.subarray(DOMAINS, { minLength: 1 }),
      columns: fc.integer({ min: 0, max: 1 }),
    }),
  ),
  doing(1, 'fresh', fc.record({})),
)
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never
type Named<Name> = Extract<Command, { do: Name }>
type Redo = Named<'redo'>['redo']

const commands = fc.array(command, { minLength: 25, maxLength: 25 })

const settings = fc.record({
  seed: fc.nat(),
  records: fc.constantFrom(20, 60),
  invalidRate: fc.constantFrom(0, 0.1),
  emptyPageRate: fc.constantFrom(0, 0.2),
  lateRate: fc.constantFrom(0, 0.1),
  identifierOrder: fc.constantFrom('asc', 'desc'),
  partitionBy: fc.constantFrom(['query', 'window'], 'query', 'window', 'none'),
  shardRows: fc.constantFrom(1000, 7, 20),
  order: fc.constantFrom('asc', 'desc'),
  hasTables: fc.boolean(),
  pageSize: fc.constantFrom(5, 12, 'auto'),
  isTenant: fc.boolean(),
  concurrency: fc.constantFrom(1, 3),
})
type Settings = typeof settings extends fc.Arbitrary<infer T> ? T : never
type Resource = 'search' | 'feed'

for (const resource of ['search', 'feed'] as const) {
  test(`any sequence of commands leaves an export of a ${resource} with exactly its rows`, async () => {
    await fc.assert(
      fc.asyncProperty(settings, commands, async (drawn, sequence) => {
        const world = await startWorld(resource, drawn)
        for (const [number, each] of sequence.entries()) {
          await obey(world, each).catch((error: unknown) => {
            throw new Error(`command ${number}, ${JSON.stringify(each)}: ${String(error)}`, { cause: error })
          })
        }
      }),
      { numRuns: SEQUENCES, seed: SEED, endOnFailure: true },
    )
  }, 36_000_000)
}

type World = Workspace & {
  readonly resource: Resource
  readonly settings: Settings
  readonly model: ExportModel
  /** What the service has and what the pipeline asks for; `change` alters them. */
  readonly now: { day: number; domains: readonly string[]; months: number; columns: number }
  /** Digests of all shards so far, by path. */
  readonly shards: Map<string, string>
}

async function startWorld(resource: Resource, settings: Settings): Promise<World> {
  const { seed, records, invalidRate, emptyPageRate, lateRate, identifierOrder } = settings
  const now = { day: 100, domains: DOMAINS.slice(0, 2), months: 4, columns: 0 }
  const sandbox = await startSandbox({
    ...{ seed, records, invalidRate, emptyPageRate, lateRate, identifierOrder },
    ...{ nastyRate: 0, nullRate: 0.02, stateRate: 0, domains: DOMAINS },
    ...(resource === 'feed' ? { now: () => BEGIN + now.day * DAY_MS } : {}),
  })
  const here = await workspaceFor(sandbox, {}, {}, carryOutHere)
  const model = new ExportModel(lateRate > 0)
  const world = { ...here, resource, settings, model, now, shards: new Map<string, string>() }
  await writePipeline(world)
  return world
}

function writePipeline({ resource, settings, now, write }: World): Promise<void> {
  const { partitionBy, shardRows, order, hasTables, pageSize, isTenant, concurrency } = settings
  const windows = { from: firstOf(1), until: firstOf(now.months + 1), every: 'month' }
  const search = { domains: now.domains, windows, order, concurrency }
  const feed = { resource: 'feed', ...(isTenant ? {} : { identifiers: IDENTIFIERS }) }
  return write({
    service: { retries: 0 },
    extract: { ...(resource === 'feed' ? feed : search), page_size: pageSize },
    transform: {
      ...(now.columns < 1 ? {} : { secret_facts: { policy: { min_length: 12, classes: 3 } } }),
      ...(now.columns < 2 ? {} : { extra_columns: ['event_uid'] }),
    },
    load: {
      ...(hasTables ? { table_formats: ['iceberg', 'delta'] } : { format: 'csv' }),
      partition_by: partitionBy,
      shard_rows: shardRows,
    },
  })
}

async function obey(world: World, command: Command): Promise<void> {
  switch (command.do) {
    case 'run':
      return run(world, budgetOf(command.maxRequests))
    case 'kill':
      return runAndKill(world, command.event, command.redo && patternOf(world, command.redo))
    case 'redo':
      return exportAnew(world, patternOf(world, command.redo), budgetOf(command.maxRequests))
    case 'prune':
      return prune(world, firstOf(command.month))
    case 'forget':
      return forget(world, pick([...allRows(world).values()], command.choice)!.identity)
    case 'lose-a-shard':
      return loseAShard(world, command)
    case 'damage-a-commit':
      return damageACommit(world, command)
    case 'change':
      return change(world, command)
    case 'fresh':
      world.model.startAnew()
      world.shards.clear()
      await succeed(world, 'run', '--fresh', '--yes')
      return expectPromises(world, { isComplete: true, mayGo: () => true })
  }
}

async function run(world: World, flags: readonly string[]): Promise<void> {
  const { code, stderr } = await cli(world, 'run', ...flags)
  expect(flags.length > 0 ? [0, 4] : [0], stderr).toContain(code)
  await expectPromises(world, { isComplete: code === 0 })
}

async function exportAnew(world: World, pattern: string, flags: readonly string[]): Promise<void> {
  const { code, stderr } = await cli(world, 'run', '--redo', pattern, ...flags)
  // A window may have no partition yet, or share a shard with rows that the service no longer has.
  if (code === 2) expect(stderr).toMatch(/matches no partition|would be lost/)
  else {
    expect(flags.length > 0 ? [0, 4] : [0], stderr).toContain(code)
    world.model.redo(pattern, (query) => isPlanned(world, query))
  }
  await expectPromises(world, { isComplete: code === 0 })
}

/** Ends a run as a kill would: what the disk holds at an event is what the next command finds. */
async function runAndKill(world: World, event: number, pattern: string | null): Promise<void> {
  const { output, folder, env, model } = world
  const copy = join(folder, 'copy')
  const abort = new AbortController()
  let events = 0
  const onLog = (): void => {
    if (++events !== event || !existsSync(output)) return
    copyAsKilled(output, copy)
    abort.abort()
  }
  const pipeline = await readPipeline(PIPELINE, { env, cwd: folder })
  const redo = pattern === null ? [] : [pattern]
  const options = await runOptions(pipeline, { env, onLog, abort: abort.signal, stop: abort.signal, redo })
  const isRefused = await runPipeline(pipeline, options).then(
    () => false,
    () => true,
  )
  const isKilled = existsSync(copy)
  if (!isKilled && pattern === null) expect(isRefused).toBe(false)
  if (isKilled) {
    rmSync(output, { recursive: true })
    cpSync(copy, output, { recursive: true })
    rmSync(copy, { recursive: true })
  }
  if (pattern !== null && (isKilled || !isRefused)) model.redo(pattern, (query) => isPlanned(world, query))
  await expectPromises(world, { isKilled })
}

async function prune(world: World, before: string): Promise<void> {
  const days = Math.floor((Date.now() - Date.parse(before)) / DAY_MS)
  const { code, value, stderr } = await cli(world, 'prune', '--yes', '--older-than', `${days}d`)
  if (!hasState(world)) return
  expect(code, stderr).toBe(0)
  const { removed = [] } = value
  world.model.prune(removed.map(({ partition }: { partition: string }) => partition))
  await expectPromises(world, { mayGo: (row) => world.model.isPruned(row) })
}

async function forget(world: World, identity: string): Promise<void> {
  writeFileSync(join(world.folder, 'people.txt'), `${identity}\n`)
  const { code, stderr } = await cli(world, 'forget', '--yes', '--identities', 'people.txt')
  if (code === 0) world.model.forget(identity)
  else expect(hasState(world), stderr).toBe(false)
  await expectPromises(world, { mayGo: (row) => world.model.isForgotten(row) })
}

/** A lost or cut shard is exported again as `verify` says; a run refuses it, or replaces it by a redo in progress. */
async function loseAShard(world: World, { choice, isCut, next }: Named<'lose-a-shard'>): Promise<void> {
  const shard = pick(await shardsOf(world), choice)
  if (shard === undefined) return
  const path = join(world.output, shard)
  const saved = readFileSync(path)
  if (isCut) truncateSync(path, Math.max(0, saved.length - 3))
  else rmSync(path)
  const repair: string[] = (await cli(world, 'verify')).value.repair
  const flags = next === 'run' ? [] : repair.flatMap((key) => ['--redo', key])
  const { code, stderr } = await cli(world, 'run', ...flags)
  if (code !== 0) {
    expect(code, stderr).toBe(next === 'repair' ? 2 : 1)
    writeFileSync(path, saved)
    await succeed(world, 'run')
  }
  await expectPromises(world, { isComplete: true })
}

/** A damaged commit is healed, or refused until it is restored. */
async function damageACommit(world: World, { choice, at }: Named<'damage-a-commit'>): Promise<void> {
  const folder = join(world.output, '_state/log')
  const paths = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
  // Smaller ones hold no rows.
  const path = pick(
    paths.filter((each) => statSync(each).size > 2000),
    choice,
  )
  if (path === undefined) return
  const saved = readFileSync(path)
  const damaged = Buffer.from(saved)
  damaged[Math.floor(saved.length * at)]! ^= 0xff
  writeFileSync(path, damaged)
  const { code, stderr } = await cli(world, 'run')
  if (code !== 0) {
    expect([1, 2], stderr).toContain(code)
    if (existsSync(path)) writeFileSync(path, saved)
    await succeed(world, 'run')
  }
  await expectPromises(world, { isComplete: true })
}

/** Time goes on for a feed; a search asks for other domains or more months, and both for more columns. */
function change(world: World, { days, months, domains, columns }: Named<'change'>): Promise<void> {
  const { now, settings } = world
  now.day = Math.min(now.day + days, 330)
  if (months === 0) now.domains = domains
  now.months = Math.min(now.months + months, 9)
  // Shards in CSV cannot get any.
  if (settings.hasTables) now.columns = Math.min(now.columns + columns, 2)
  return writePipeline(world)
}

type Expected = {
  /** Whether the last run exported all that the pipeline asks for. */
  readonly isComplete?: boolean
  readonly isKilled?: boolean
  /** Rows that the command may have removed. */
  readonly mayGo?: (row: ModelRow) => boolean
}

async function expectPromises(world: World, expected: Expected): Promise<void> {
  const { isComplete = false, isKilled = false, mayGo = () => false } = expected
  const { model } = world
  model.universe = allRows(world)
  const found = await exportedRows(world)
  expect(model.wrong(found)).toEqual([])
  expect(model.lost(found, mayGo)).toEqual([])
  if (isComplete) {
    expect(model.missing(found, (row) => isPlanned(world, row.query, row.month))).toEqual([])
    await expectVerified(world)
  }
  if (!isKilled) await expectOneTruth(world, found.length)
  model.held = new Set(found)
  for (const { path, sha256 } of (await manifestOf(world))?.shards ?? []) {
    expect(world.shards.get(path) ?? sha256, path).toBe(sha256)
    world.shards.set(path, sha256)
  }
}

async function expectVerified(world: World): Promise<void> {
  const { value, stdout } = await succeed(world, 'verify')
  expect(value, stdout).toMatchObject({ ok: true, complete: true })
  expect(existsSync(join(world.output, '_SUCCESS'))).toBe(true)
  expect((await world.manifest()).totals.quarantined).toBe((await quarantineOf(world.output)).length)
}

/** Manifest, files and open tables agree, and `status` can read the state. */
async function expectOneTruth(world: World, rows: number): Promise<void> {
  const manifest = await manifestOf(world)
  if (manifest !== null) {
    expect(manifest.shards.map(({ path }) => path).sort()).toEqual(await shardsOf(world))
    expect(manifest.totals.rows).toBe(rows)
    if (world.settings.hasTables) {
      const { value, stdout } = await succeed(world, 'tables')
      const tables: { rows: number }[] = value.tables
      // Before the first shard there is none.
      if (rows > 0) expect(tables.length).toBeGreaterThan(0)
      for (const table of tables) expect(table.rows, stdout).toBe(rows)
    }
  }
  if (hasState(world)) await succeed(world, 'status')
}

/** Keys of the rows in the shards that the manifest names. After a kill in a redo, others may still lie beside them. */
async function exportedRows(world: World): Promise<string[]> {
  const { output, settings } = world
  const named = ((await manifestOf(world))?.shards ?? []).map(({ path }) => join(output, path))
  const files = named.filter((path) => existsSync(path)).map((path) => `'${path}'`)
  if (files.length === 0) return []
  const table = settings.hasTables
    ? `read_parquet([${files}], hive_partitioning = false)`
    : `read_csv([${files}], header = true, all_varchar = true, hive_partitioning = false)`
  const rows = await sql(`select query_type, query_value, id from ${table}`)
  return rows.map(({ query_type, query_value, id }) =>
    keyOf(queryOf(`${query_type}`, `${query_value}`), `${id}`),
  )
}

function queryOf(type: string, value: string): string {
  if (type === 'domain') return `domain.${value}`
  return type === 'tenant' ? 'feed.tenant' : `feed.${value}`
}

function allRows({ resource, sandbox, settings }: World): Map<string, ModelRow> {
  if (resource === 'search') return rowsOfDomains(sandbox, DOMAINS)
  return rowsOfFeeds(sandbox, settings.isTenant ? [null] : IDENTIFIERS)
}

function isPlanned({ resource, now }: World, query: string, month = firstOf(1)): boolean {
  if (resource === 'feed') return true
  return (
    now.domains.includes(query.replace('domain.', '')) && month >= firstOf(1) && month <= firstOf(now.months)
  )
}

/** One window of a query, all of them, or all partitions of a search. */
function patternOf({ resource, settings, now }: World, { choice, month }: Redo): string {
  const feeds = settings.isTenant ? ['feed.tenant'] : IDENTIFIERS.map((id) => `feed.${id}`)
  const query = pick(resource === 'feed' ? feeds : now.domains.map((domain) => `domain.${domain}`), choice)!
  const window = `${firstOf(month)}..${firstOf(month + 1)}`
  const all = resource === 'feed' ? `${query}/all` : '*/*'
  return pick([`${query}/*`, `${query}/${window}`, all], Math.floor(choice / 10))!
}

const manifestOf = async ({ output, manifest }: World) =>
  existsSync(join(output, '_manifest.json')) ? manifest() : null

async function shardsOf({ output }: World): Promise<string[]> {
  if (!existsSync(output)) return []
  return (await shardPaths(output)).filter((path) => /\.(?:csv|parquet)$/.test(path))
}

const hasState = ({ output }: World): boolean => existsSync(join(output, '_state/checkpoint.jsonl'))

const succeed = (world: World, name: string, ...flags: string[]) => exits(0, cli(world, name, ...flags))

const cli = ({ json }: World, name: string, ...flags: string[]) => json(name, ...flags)

function budgetOf(maxRequests: number | null): string[] {
  return maxRequests === null ? [] : ['--max-requests', String(maxRequests)]
}

const pick = <T>(all: readonly T[], choice: number): T | undefined => all[choice % all.length]

const firstOf = (month: number): string => `2024-${String(month).padStart(2, '0')}-01`
