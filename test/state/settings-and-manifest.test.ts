import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Pipeline } from '../../src/core/index.ts'
import { columnChanges, settingsSince } from '../../src/data-set/admission.ts'
import { frozenSettings } from '../../src/pipeline/index.ts'
import { KNOWN_EXTRAS, schemaOf } from '../../src/rows/index.ts'
import {
  type CheckpointState,
  changedSettings,
  MANIFEST_PATH,
  maskKeySetting,
  readManifest,
  type SealEntry,
  settingsDigest,
  writeManifest,
} from '../../src/state/index.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { pipelineOf } from '../pipeline/plan/pipeline.ts'
import { cases } from '../support/thorough.ts'
import {
  begun,
  chainOfAll,
  commitLines,
  ended,
  HEADER,
  type JournalLine,
  NOBODY,
  own,
  page,
  seal,
  stateIn,
} from './lines.ts'

const KEY = Buffer.from('0123456789abcdef0123456789abcdef')
const base: Pipeline = pipelineOf({})

const PLAN: Parameters<typeof writeManifest>[3] = {
  scope: {
    service: 'api.example.test',
    queries: ['domain.acme.com', 'domain.acme.dev'],
    windows: null,
    on_invalid: 'quarantine',
    max_quarantined: '1%',
    shard_rows: 1_000_000,
  },
  planned: ['domain.acme.com/all', 'domain.acme.dev/all'],
  retired: [],
  waiting: [],
}

/** What is planned, and what else the data set has, by key. */
const PARTITIONS = [
  { key: 'domain.acme.com/all', state: 'done', rows: 1, quarantined: 4, repeated: 2 },
  { key: 'domain.acme.dev/all', state: 'pending', rows: 0, quarantined: 0 },
  {
    key: 'domain.acme.net/all',
    state: 'failed',
    rows: 0,
    quarantined: 0,
    error: { cause: 'no answer', next: 'Run again.' },
  },
]

type Patch = { readonly [S in 'service' | 'extract' | 'transform' | 'load']?: Partial<Pipeline[S]> }

function changed(patch: Patch, from = base): Pipeline {
  const sections = Object.entries(patch).map(([name, own]) => [
    name,
    { ...from[name as keyof Patch], ...own },
  ])
  return { ...from, ...Object.fromEntries(sections) }
}

/** What a data set keeps, as it is read from the checkpoint. */
const kept = (pipeline: Pipeline, key: Uint8Array | null) =>
  JSON.parse(JSON.stringify({ ...frozenSettings(pipeline), ...maskKeySetting(key) }))

function refusalOf(before: Pipeline, now: Pipeline, [was = null, is = null]: readonly (Uint8Array | null)[]) {
  const changes = [...settingsSince(kept(before, was), now, is), ...columnChanges(now, schemaOf(before))]
  return changes.length === 0 ? null : changedSettings(changes, now)
}

function refusal(before: Pipeline, now: Pipeline, keys: readonly (Uint8Array | null)[] = []): string {
  const error = refusalOf(before, now, keys)
  if (error === null) return ''
  expect(error.where).toBe(now.file)
  return error.what
}

const PARQUET = base.load.format as Extract<Pipeline['load']['format'], { kind: 'parquet' }>
const CSV = { kind: 'csv', engine: 'columnar', compression: 'gzip', escapeFormulas: true } as const

const frozen: [string, Patch][] = [
  ['load.parquet.encodings', { load: { format: { ...PARQUET, encodings: 'plain' } } }],
  ['extract.resource', { extract: { resource: 'reports' } }],
  ['service.search_path', { service: { addresses: { ...base.service.addresses, search_path: '/other' } } }],
  ['extract.order', { extract: { order: 'desc' } }],
  ['transform.secret', { transform: { secret: 'hmac' } }],
  ['transform.identity', { transform: { identity: 'drop' } }],
  ['load.format', { load: { format: CSV } }],
  ['load.partition_by', { load: { partitionBy: ['query'] } }],
]

const WINDOWS = { from: 0, until: 'now', every: null, lagMs: 1, perChain: 7 } as const

const free: [string, Patch][] = [
  ['extract.page_size', { extract: { pageSize: 500 } }],
  ['pace and patience', { service: { requestsPerSecond: 9, retries: 0, timeoutMs: 1 } }],
  ['budgets', { extract: { maxRequests: 1, minSearchesRemaining: 9, concurrency: 1 } }],
  ['windows', { extract: { windows: WINDOWS } }],
  ['the limit of quarantine', { transform: { maxQuarantined: { kind: 'count', items: 7 } } }],
  ['size and modes of shards', { load: { shardRows: 5, fileMode: 0o640 } }],
]

describe('frozen settings of a data set', () => {
  it.each(free)('do not include %s', (_, change) => {
    expect(refusal(base, changed(change))).toBe('')
  })

  it.each(frozen)('may not change: %s', (name, change) => {
    expect(refusal(base, changed(change))).toContain(name)
    expect(refusal(changed(change), base)).toContain(name)
  })

  it('are all reported in one error, each with its old and new value', () => {
    const some = frozen.slice(3)
    fc.assert(
      fc.property(fc.shuffledSubarray(some, { minLength: 1 }), (patches) => {
        const now = patches.reduce((pipeline, [, patch]) => changed(patch, pipeline), base)
        const message = refusal(base, now)
        for (const each of some) expect(message.includes(`${each[0]} was`)).toBe(patches.includes(each))
      }),
    )
    expect(refusal(base, changed(some[0]![1]))).toContain('extract.order was "asc" and is now "desc"')
  })

  it('are located in the pipeline file, a default in its section', () => {
    const locations = {
      extract: 'acme.yaml:4:1',
      'extract.order': 'acme.yaml:6:3',
      transform: 'acme.yaml:8:1',
      'load.format': '--format',
    }
    const [order, identity, format] = ['extract.order', 'transform.identity', 'load.format'].map(
      (name) => frozen.find(([other]) => other === name)![1],
    )
    const where = (now: Pipeline, key: Uint8Array | null = null): unknown =>
      refusalOf(base, { ...now, locations }, [key && KEY, key])?.where
    expect(where(changed(order!))).toBe('acme.yaml:6:3')
    expect(where(changed(identity!, changed(order!)))).toBe('acme.yaml:6:3, acme.yaml:8:1')
    expect(where(changed(format!))).toContain('--format')
    expect(where(base, Buffer.from('another key that is long enough too'))).toBe('acme.yaml:8:1')
  })

  it('differ by the mask key, which the error does not reveal', () => {
    const message = refusal(base, base, [KEY, Buffer.from('another key that is long enough too')])
    expect(message).toContain('mask key')
    expect(message).not.toMatch(/[0-9a-f]{16}/)
    const settings = JSON.stringify(kept(base, KEY))
    expect(settings).not.toContain(KEY.toString())
    expect(settings).not.toContain(KEY.toString('hex'))
  })

  it('have one digest, whatever their order', () => {
    const settings = kept(base, KEY)
    const entries = Object.entries(settings)
    fc.assert(
      fc.property(fc.shuffledSubarray(entries, { minLength: entries.length }), (shuffled) => {
        expect(settingsDigest(Object.fromEntries(shuffled))).toBe(settingsDigest(settings))
      }),
    )
    expect(settingsDigest(kept(base, null))).not.toBe(settingsDigest(settings))
    expect(settingsDigest(settings)).toMatch(/^[0-9a-f]{64}$/)
  })
})

describe('the columns of a data set', () => {
  const facts = { policy: { minLength: 12, classes: 3 } }
  const severity = { name: 'severity', path: ['details', 'severity'], type: 'string', meaning: null } as const
  const columns = [...base.transform.columns]
  const more: [string, Patch][] = [
    ['a column', { transform: { columns: [...columns, 'domain'] } }],
    ['an included field', { extract: { include: ['urls'] }, transform: { columns: [...columns, 'urls'] } }],
    ['a field of their own', { transform: { extraColumns: [severity], columns: [...columns, 'severity'] } }],
    ['facts', { transform: { secretFacts: facts, columns: [...columns, 'secret_kind'] } }],
  ]

  it.each(more)('may grow by %s, and not shrink again', (_, patch) => {
    const now = changed(patch)
    expect(refusal(base, now)).toBe('')
    expect(refusal(now, base)).toMatch(/no longer has|is gone/)
  })

  it.each(more)('of CSV may not: %s', (_, patch) => {
    const before = changed({ load: { format: CSV } })
    expect(refusal(before, changed(patch, before))).toContain('which CSV shards cannot get')
  })

  it('keep types, paths and the policy of facts', () => {
    const own = (over: object, policy = facts): Pipeline =>
      changed({
        transform: {
          extraColumns: [{ ...severity, ...over }],
          secretFacts: policy,
          columns: [...columns, 'severity', 'secret_kind'],
        },
      })
    expect(refusal(own({}), own({ type: 'int64' }))).toContain(
      'severity as details.severity string and now has it as details.severity int64',
    )
    expect(refusal(own({}), own({ path: ['severity'] }))).toContain('now has it as severity string')
    const longer = own({}, { policy: { minLength: 16, classes: 3 } })
    expect(refusal(own({}), longer)).toContain('min_length 12, classes 3 and now has min_length 16')
  })

  it('may stand in another order', () => {
    const [first, second] = [KNOWN_EXTRAS[0]!, KNOWN_EXTRAS[1]!]
    const own = (...extraColumns: (typeof KNOWN_EXTRAS)[number][]): Pipeline =>
      changed({ transform: { extraColumns, columns: [...columns, ...extraColumns.map(({ name }) => name)] } })
    expect(refusal(own(first, second), own(second, first))).toBe('')
  })
})

const shard = fc.record({
  part: fc.nat({ max: 99_999 }),
  rows: fc.nat(),
  bytes: fc.nat(),
  imported_at: fc.option(
    fc.record({ min: fc.constant(1_704_067_200_123_456), max: fc.constant(1_704_067_200_123_457) }),
  ),
  partitions: fc.uniqueArray(
    fc.string({ unit: 'grapheme' }).map((text) => `domain.${text}/all`),
    { minLength: 1, maxLength: 3 },
  ),
})

async function stateOf(lines: readonly JournalLine[]): Promise<CheckpointState> {
  const { store } = temporaryStore()
  await commitLines(store, [HEADER, ...lines])
  return stateIn(store)
}

describe('the manifest', () => {
  it('is read back, has correct totals, and does not depend on the order in which shards were finished', async () => {
    const shards = fc.uniqueArray(shard, { selector: ({ part }) => part, maxLength: 6 })
    const shuffled = shards.chain((made) =>
      fc.tuple(fc.constant(made), fc.shuffledSubarray(made, { minLength: made.length })),
    )
    await fc.assert(
      fc.asyncProperty(shuffled, async ([made, other]) => {
        const { store, root } = temporaryStore()
        const texts: string[] = []
        for (const order of [made, other]) {
          const seals = order.map(
            ({ part, ...facts }, index): SealEntry =>
              seal(index, `credentials/part-${String(part).padStart(5, '0')}.csv`, {
                ...facts,
                partitions: index % 2 === 0 ? facts.partitions : facts.partitions.toReversed(),
              }),
          )
          await writeManifest(await own(store), base, await stateOf(seals), PLAN)
          texts.push(readFileSync(join(root, MANIFEST_PATH), 'utf8'))
        }
        expect(texts[1]).toBe(texts[0])
        const manifest = await readManifest(store)
        expect(manifest).toEqual(JSON.parse(texts[0] ?? ''))
        const sum = (of: 'rows' | 'bytes') => made.reduce((total, one) => total + one[of], 0)
        expect(manifest?.totals).toEqual({
          rows: sum('rows'),
          bytes: sum('bytes'),
          shards: made.length,
          quarantined: 0,
          forgotten: 0,
          repeated: 0,
        })
        expect(manifest?.shards.map(({ path }) => path)).toEqual(
          made.map(({ part }) => `credentials/part-${String(part).padStart(5, '0')}.csv`).sort(),
        )
      }),
      { numRuns: cases(90, 10) },
    )
  })

  it('has the fields that scripts read', async () => {
    const { store } = temporaryStore()
    const state = await stateOf([
      begun('a', { version: '1.2.3' }),
      chainOfAll(0, 'domain.acme.com'),
      page({
        next: null,
        requests: 3,
        slices: [{ window: 'all', shard: 0, rows: 1, imported_at: null }],
        quarantine: [{ window: 'all', items: 4, blob: 0 }],
        unknown_fields: { zeta: 1, alpha: 2 },
        repeated: 2,
      }),
      seal(0, 'credentials/part-00000.parquet', {
        imported_at: { min: 1_704_067_200_123_456, max: 1_704_067_200_123_457 },
      }),
      ended('a', { requests: 3, retries: 1, searches: 12, searches_remaining: 988 }),
      // Killed: it has no count of its requests, but its lines do.
      begun('b', { started_at: '2024-07-02T00:00:00.000Z' }),
      chainOfAll(1, 'domain.acme.org'),
      page({ chain: 1, requests: 4, repeated: 3, size: 500, forgotten: [{ window: 'all', items: 6 }] }),
      { kind: 'forget', at: '2024-07-03T00:00:00Z', identities: 2, rows: 0, shards: 0, quarantined: 0 },
      { kind: 'measured', times: [[500, 90]], tells_searches: true, spent: 20, left: 968 },
      {
        kind: 'failed',
        partition: 'domain.acme.net/all',
        requests: 2,
        error: { kind: 'transient', message: 'x', cause: 'no answer', next: 'Run again.' },
      },
    ])
    await writeManifest(await own(store), base, state, PLAN)
    expect(await readManifest(store)).toEqual({
      version: 1,
      pipeline: 'acme',
      data_set_id: HEADER.data_set_id,
      resource: 'credentials',
      format: 'parquet',
      columns: [
        { name: 'id', type: 'INT64', nullable: false },
        { name: 'hash', type: 'STRING', nullable: true },
        { name: 'imported_at', type: 'TIMESTAMP(MICROS, UTC)', nullable: false },
      ],
      masking: { secret: 'redact', identity: 'keep' },
      schemas: [['id', 'hash', 'imported_at']],
      schema_settings: [HEADER.schema],
      config_digest: settingsDigest(HEADER.settings),
      settings: HEADER.settings,
      scope: PLAN.scope,
      // Of the last one only what was dropped for forgotten people is known.
      partitions: [
        ...PARTITIONS,
        { key: 'domain.acme.org/all', state: 'partial', rows: 0, quarantined: 0, repeated: 3, forgotten: 6 },
      ],
      shards: [
        {
          path: 'credentials/part-00000.parquet',
          rows: 1,
          bytes: 10,
          sha256: 'ab'.repeat(32),
          partitions: ['domain.acme.com/all'],
          imported_at: { min: '2024-01-01T00:00:00.123456Z', max: '2024-01-01T00:00:00.123457Z' },
        },
      ],
      totals: { rows: 1, bytes: 10, shards: 1, quarantined: 4, repeated: 5, forgotten: 6 },
      begun_parts: {},
      retired: [],
      prunes: [],
      forgotten: [{ at: '2024-07-03T00:00:00Z', identities: 2, rows: 0, shards: 0, quarantined: 0 }],
      covers: null,
      waiting: [],
      unknown_fields: { alpha: 2, zeta: 1 },
      runs: [
        {
          started_at: '2024-07-01T00:00:00.000Z',
          finished_at: '2024-07-01T00:01:00.000Z',
          status: 'complete',
          rows: 1,
          requests: 3,
          retries: 1,
          quarantined: 4,
          failures: 0,
          reasons: {},
          searches_spent: 12,
          searches_remaining: 988,
          version: '1.2.3',
          by: NOBODY,
          error: null,
        },
        {
          started_at: '2024-07-02T00:00:00.000Z',
          finished_at: null,
          status: 'interrupted',
          rows: 0,
          requests: 6,
          retries: 0,
          quarantined: 0,
          failures: 1,
          reasons: {},
          searches_spent: 20,
          searches_remaining: 968,
          version: '1.0.0',
          by: NOBODY,
          error: null,
          service: { page_size: 500 },
        },
      ],
    })
    // What a signature covers is never assumed.
    const { settings, scope, partitions, prunes, forgotten, ...rest } = (await readManifest(store))!
    const covered = Object.entries({ settings, scope, partitions, prunes, forgotten })
    for (const [left] of covered) {
      const others = Object.fromEntries(covered.filter(([name]) => name !== left))
      await (await own(store)).replace(MANIFEST_PATH, [JSON.stringify({ ...rest, ...others })])
      await expect(readManifest(store), left).rejects.toMatchObject({ kind: 'damaged' })
    }
  })

  it('is null if the file does not exist, and damaged if it cannot be parsed', async () => {
    const { store } = temporaryStore()
    expect(await readManifest(store)).toBeNull()
    for (const text of ['', '{', '{}', '{"version":2}']) {
      await (await own(store)).replace(MANIFEST_PATH, [text])
      await expect(readManifest(store)).rejects.toEqual(anError('damaged', MANIFEST_PATH))
    }
  })
})
