import fc from 'fast-check'
import { expect, test } from 'vitest'
import { quarantineOf } from '../support/quarantine.ts'
import { isObject, isValid } from '../support/rows.ts'
import { type Ended, start } from '../support/run-cli.ts'
import { type Fault, type Sandbox, startSandbox } from '../support/sandbox.ts'
import { seedOf, times } from '../support/thorough.ts'
import { PIPELINE, type Workspace, workspaceFor } from '../support/workspace.ts'
import { findLeaks, haystacksOf } from './leak-search.ts'
import { diskFault } from './support.ts'

/*
 * Each random pipeline is run again and again until it is complete, with random network faults, kills, signals, full
 * disks, refused tokens, budgets, quotas and cursors that end. Then every row is compared with the data of the service.
 * No row is lost or doubled, no secret is leaked, and each run ends in a way that is documented.
 */

/** So long, with other seeds than those of the day: FAULT_SEED=<number>. */
const MINUTES = Number(process.env.SOAK_MINUTES ?? 0)
const PIPELINES = MINUTES > 0 ? 1_000_000 : times(16, 400)
const SEED = Number(process.env.FAULT_SEED ?? seedOf(20260306))

const ACCESS = { SPILLWAY_TOKEN: 'soak-token-4b1d7c90aa52', SPILLWAY_API_KEY: 'soak-api-key-98cc1f03be77' }
const KEY = 'soak-mask-key-of-at-least-32-bytes-5e2a'
const DOMAINS = ['scatterholt.com', 'quillmere.net', 'acme.example']
const RANGE = { from: '2024-03-01', until: '2024-06-20' }

const pipelines = fc.record({
  queried: fc.integer({ min: 1, max: 3 }),
  every: fc.constantFrom(null, 'month', '45d', 'week'),
  order: fc.constantFrom('asc', 'desc'),
  pageSize: fc.integer({ min: 3, max: 30 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
  secret: fc.constantFrom('redact', 'drop', 'partial', 'hmac'),
  hasApiKey: fc.boolean(),
  shards: fc.constantFrom<Readonly<Record<string, string>>>(
    { format: 'parquet' },
    { format: 'parquet', compression: 'gzip' },
    { format: 'parquet', engine: 'parquetjs-lite' },
    { format: 'csv' },
    { format: 'csv', compression: 'gzip' },
    { format: 'csv', engine: 'csv-stringify' },
  ),
  partitionBy: fc.constantFrom(['query', 'window'], 'query', 'window', 'none'),
  shardRows: fc.integer({ min: 20, max: 300 }),
})
type Settings = typeof pipelines extends fc.Arbitrary<infer T> ? T : never

const data = fc.record({
  records: fc.integer({ min: 100, max: 300 }),
  seed: fc.nat(),
  invalidRate: fc.constantFrom(0, 0.02),
  emptyPageRate: fc.constantFrom(0, 0.1),
  shortPageRate: fc.constantFrom(0, 0.1),
  lastNext: fc.constantFrom<('null' | 'missing')[]>('null', 'missing'),
  gzip: fc.boolean(),
  unknownFields: fc.boolean(),
  latencyMs: fc.constantFrom(0, [0, 15] as const),
})

const effects = fc.record({
  effect: fc.constantFrom<Fault[]>(
    ...(['reset', 'reset-mid-body', 'truncate', 'wrong-content-length'] as const).map((kind) => ({ kind })),
    ...(['html', 'invalid-json', 'wrong-shape', 'stall', 'hang'] as const).map((kind) => ({ kind })),
    ...[500, 503].map((status) => ({ kind: 'status' as const, status })),
    { kind: 'status', status: 429, retryAfter: '1' },
  ),
  rate: fc.double({ min: 0.03, max: 0.2, noNaN: true }),
  times: fc.integer({ min: 1, max: 3 }),
})

const at = fc.integer({ min: 1, max: 10 })
const call = fc.integer({ min: 1, max: 200 })
const disturbances = fc.oneof(
  fc.record({ kind: fc.constant('none') }),
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom('SIGKILL', 'SIGINT', 'SIGTERM', 'SIGINT twice'), at }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('disk'),
      fault: fc.tuple(fc.constantFrom('kill', 'power', 'torn', 'full'), call).map((words) => words.join(':')),
    }),
  },
  fc.record({ kind: fc.constantFrom('budget', 'quota'), at }),
  fc.record({ kind: fc.constant('other cursors') }),
)
const runs = fc.array(
  fc.record({
    disturbance: disturbances,
    effects: fc.array(effects, { maxLength: 3 }),
    isRefused: fc.boolean(),
    logs: fc.constantFrom('json', 'pretty'),
  }),
  { minLength: 12, maxLength: 12 },
)
type Run = (typeof runs extends fc.Arbitrary<infer T> ? T : never)[number]

const CALM: Run = { disturbance: { kind: 'none' }, effects: [], isRefused: false, logs: 'pretty' }

test('random pipelines give every row once, whatever disturbs their runs', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.noBias(pipelines),
      fc.noBias(data),
      fc.noBias(runs),
      async (settings, served, disturbed) => {
        const domains = DOMAINS.slice(0, settings.queried)
        const given = {
          ...served,
          domains: DOMAINS,
          token: ACCESS.SPILLWAY_TOKEN,
          apiKey: ACCESS.SPILLWAY_API_KEY,
        }
        const here = await pipelineOf(await startSandbox(given), settings, domains)
        const printed: string[] = []
        const seen = new Set<string>()
        let [cursorKey, repeated, allowed, end] = ['first', 0, 0, '']
        // What a run may leave undone when nothing disturbs it any more, the next one does.
        for (const [number, run] of [...disturbed, CALM, CALM, CALM].entries()) {
          const { disturbance } = run
          const about = `run ${number}, ${JSON.stringify(disturbance)}`
          if (disturbance.kind === 'other cursors') {
            cursorKey = `key ${number}`
            seen.clear()
          }
          const { ended, sandbox } = await carriedOut(here, run, { ...given, cursorKey }, settings.hasApiKey)
          end = ended.signal ?? `exit ${ended.code}`
          printed.push(ended.stdout, ended.stderr)
          expect(documentedEnds(disturbance.kind), `${about}\n${ended.stderr}`).toContain(end)
          repeated += pagesSeenAgain(sandbox, seen)
          expect(repeated, `${about}: pages repeated`).toBeLessThanOrEqual(allowed)
          // Responses in flight, or not yet on the disk.
          if (end === 'SIGKILL' || /disk|twice/.test(disturbance.kind)) allowed += settings.concurrency
          if (end === 'exit 0') break
        }
        expect(end, printed.at(-1)).toBe('exit 0')
        await expectWhole(here, settings, domains)
        const secrets = [...Object.values(ACCESS), KEY, ...distinctSecrets(here.sandbox, domains)]
        const canaries = secrets.map((value) => ({ name: JSON.stringify(value), value }))
        const said = printed.map((text, run) => ({ name: `output ${run}`, bytes: Buffer.from(text) }))
        expect(findLeaks([...said, ...(await haystacksOf(here.folder))], canaries)).toEqual([])
      },
    ),
    {
      numRuns: PIPELINES,
      seed: SEED,
      endOnFailure: true,
      ...(MINUTES > 0 ? { interruptAfterTimeLimit: MINUTES * 60_000, markInterruptAsFailure: false } : {}),
    },
  )
}, 36_000_000)

function pipelineOf(sandbox: Sandbox, settings: Settings, domains: readonly string[]): Promise<Workspace> {
  const { every, order, pageSize, concurrency, secret, hasApiKey, shards, partitionBy, shardRows } = settings
  return workspaceFor(
    sandbox,
    {
      service: {
        timeout: '4s',
        retries: 3,
        ...(hasApiKey ? { api_key_env: 'SPILLWAY_API_KEY', token_url: '/tokens/generate' } : {}),
      },
      extract: {
        domains,
        ...(every === null ? {} : { windows: { ...RANGE, every } }),
        ...{ order, page_size: pageSize, concurrency, max_requests: 'none', min_searches_remaining: 1 },
      },
      transform: { secret },
      load: { ...shards, partition_by: partitionBy, shard_rows: shardRows },
    },
    { ...ACCESS, SPILLWAY_MASK_KEY: KEY },
  )
}

/** Runs the command once against a sandbox of its own. */
async function carriedOut(
  here: Workspace,
  { disturbance, effects, isRefused, logs }: Run,
  given: Parameters<typeof startSandbox>[0] & object,
  hasApiKey: boolean,
): Promise<{ readonly ended: Ended; readonly sandbox: Sandbox }> {
  let strike = (_ordinal: number): boolean => false
  const faults: Fault[] = [
    // Never injected: its condition sees every search.
    { kind: 'reset', when: ({ ordinal }) => strike(ordinal) },
    ...effects.map(({ effect, ...often }) => ({ ...effect, ...often })),
    ...(isRefused && hasApiKey ? [{ kind: 'status', status: 401, rate: 0.2, times: 1 } as const] : []),
  ]
  const quota = disturbance.kind === 'quota' ? { quota: disturbance.at + 1 } : {}
  const sandbox = await startSandbox({ ...given, ...quota, faults })
  const { child, result, until } = start(
    [
      ...['run', PIPELINE, '--log-level', 'debug', '--log-format', logs],
      ...(disturbance.kind === 'budget' ? ['--max-requests', String(disturbance.at)] : []),
    ],
    here.folder,
    {
      ...here.env,
      SPILLWAY_BASE_URL: sandbox.baseUrl,
      ...('fault' in disturbance ? diskFault(here.output, disturbance.fault) : {}),
    },
  )
  strike = (ordinal) => {
    const [signal, twice] = disturbance.kind.split(' ')
    if (!('at' in disturbance) || ordinal !== disturbance.at || !signal!.startsWith('SIG')) return false
    child.kill(signal as NodeJS.Signals)
    if (twice)
      until((stderr) => stderr.includes('Stopping')).then(
        () => child.kill('SIGINT'),
        () => {},
      )
    return false
  }
  const ended = await result
  await sandbox.close()
  return { ended, sandbox }
}

/** Partitions may fail because of the network, or of a full disk. */
function documentedEnds(kind: string): readonly string[] {
  const always = ['exit 0', 'exit 1']
  if (kind === 'budget' || kind === 'quota') return [...always, 'exit 4']
  // The second signal may come after the process has removed its handler.
  if (kind.startsWith('SIGINT')) return [...always, 'exit 130', 'SIGINT']
  if (kind === 'SIGTERM') return [...always, 'exit 143']
  return kind === 'SIGKILL' || kind === 'disk' ? [...always, 'SIGKILL'] : always
}

/** The number of pages that were served completely more than once. */
function pagesSeenAgain({ requests }: Sandbox, seen: Set<string>): number {
  const whole = requests.filter(
    (each) => each.kind === 'search' && each.status === 200 && each.fault === null,
  )
  return whole.filter(({ body }) => {
    const key = JSON.stringify(body)
    return seen.size === seen.add(key).size
  }).length
}

async function expectWhole(here: Workspace, settings: Settings, domains: readonly string[]): Promise<void> {
  const { every, secret, shards } = settings
  const range = every === null ? {} : RANGE
  const masking = { secret, key: KEY }
  await here.expectRows(domains, { ...range, masking, milliseconds: shards.engine === 'parquetjs-lite' })
  const items = domains.flatMap((fqdn) => [
    ...here.sandbox.expected({ query: { type: 'domain', fqdn }, ...range }),
  ])
  const rejected = items.filter((item) => !isValid(item)).length
  expect((await quarantineOf(here.output)).length).toBeGreaterThanOrEqual(rejected)
}

function distinctSecrets(sandbox: Sandbox, domains: readonly string[]): readonly string[] {
  const items = domains.flatMap(
    (fqdn) => [...sandbox.expected({ query: { type: 'domain', fqdn } })] as unknown[],
  )
  const others = JSON.stringify(items, (key, value) => (key === 'hash' ? null : value))
  const hashes = new Set(
    items.flatMap((item) => (isObject(item) && typeof item.hash === 'string' ? [item.hash] : [])),
  )
  return [...hashes]
    .filter((hash) => hash.length >= 10 && !others.includes(JSON.stringify(hash).slice(1, -1)))
    .slice(0, 20)
}
