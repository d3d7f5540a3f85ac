import type { Manifest, ManifestPartition, Verdict } from '../../src/state/index.ts'
import type { SummaryInput } from '../../src/summary/index.ts'

export const DOMAINS = ['quillmere.net', 'scatterholt.com', 'unit2.example', 'unit10.example']

const next = (month: number): string => (month === 12 ? '2025-01-01' : `2024-${two(month + 1)}-01`)
const two = (value: number): string => String(value).padStart(2, '0')

export const keyOf = (domain: string, month: number): string =>
  `domain.${domain}/2024-${two(month)}-01..${next(month)}`

const FAILURE = { cause: 'The service responds 503', next: 'Run again.' }

const partitions: ManifestPartition[] = DOMAINS.flatMap((domain, row) =>
  Array.from({ length: 12 }, (_, i) => {
    const key = keyOf(domain, i + 1)
    if (i === 11) return { key, state: 'pending', rows: 0, quarantined: 0 }
    if (i === 10) return { key, state: 'partial', rows: 40, quarantined: 0 }
    if (row === 0 && i < 2) return { key, state: 'failed', rows: 0, quarantined: 0, error: FAILURE }
    return { key, state: 'done', rows: 1000 * (i + row) + 7, quarantined: 0 }
  }),
)

const MANIFEST: Manifest = {
  version: 1,
  pipeline: 'acme-backfill',
  data_set_id: '7b3f8f6e-2f3c-4a52-9d0f-0d6c3b1f2a10',
  resource: 'credentials',
  format: 'parquet',
  columns: ['id', 'domain', 'identity_name', 'hash'].map((name) => ({
    name,
    type: 'STRING',
    nullable: false,
  })),
  schemas: [['id', 'domain', 'identity_name', 'hash']],
  schema_settings: [
    {
      include: [],
      columns: ['id', 'domain', 'identity_name', 'hash'],
      extra_columns: [],
      secret_facts: null,
    },
  ],
  masking: { secret: 'hmac', identity: 'hmac' },
  config_digest: 'ab'.repeat(32),
  shards: Array.from({ length: 20 }, (_, i) => ({
    path: `credentials/query=domain.scatterholt.com/import_window=2024-01-01/part-${String(i).padStart(5, '0')}.parquet`,
    rows: 1234 + i,
    bytes: 280_123 + i,
    sha256: 'cd'.repeat(32),
    partitions: [keyOf('scatterholt.com', 1)],
    imported_at: null,
  })),
  totals: {
    rows: 1_234_567,
    bytes: 98_765_432,
    shards: 20,
    quarantined: 9,
    repeated: 17,
    forgotten: 0,
  },
  unknown_fields: { severity: 12, '<b>': 1 },
  covers: null,
  waiting: [],
  retired: [{ query: 'domain.gone.example', partitions: 1, rows: 3 }],
  settings: {},
  scope: {
    service: 'api.example.com',
    queries: DOMAINS.map((domain) => `domain.${domain}`),
    windows: { from: '2024-01-01T00:00:00Z', until: '2025-01-01T00:00:00Z', every: 'month', lag_seconds: 0 },
    on_invalid: 'quarantine',
    max_quarantined: '1%',
    shard_rows: 1_000_000,
  },
  partitions,
  prunes: [],
  begun_parts: {},
  forgotten: [],
  runs: ['complete', 'failed', 'interrupted'].map((status, i) => ({
    started_at: `2024-12-0${i + 1}T02:00:00.000Z`,
    finished_at: `2024-12-0${i + 1}T02:10:00.000Z`,
    status,
    rows: 500_000,
    requests: 60 + i,
    retries: i,
    quarantined: 3,
    failures: i,
    reasons: { 'source: Invalid input: expected object, received null': 3 },
    searches_spent: i % 2 === 0 ? null : 6000 + i,
    searches_remaining: i === 2 ? null : 9000,
    version: '1.0.0',
    by: { organization: 7, tenant: null, host: 'etl-2' },
    error: null,
  })),
}

const STOPPED: Verdict = {
  state: 'stopped',
  headline: 'STOPPED: 2 of 48 partitions failed, 8 not done',
  why: 'The service responded with 401 (<api.example.com>)',
  next: 'Check that SPILLWAY_TOKEN holds a valid token.',
  covers: { from: '2024-01-01T00:00:00Z', until: '2024-11-01T00:00:00Z' },
  waiting: [{ from: '2025-01-01T00:00:00Z', until: '2025-02-01T00:00:00Z' }],
  partitions: { total: 48, done: 38, failed: 2, pending: 8 },
  complete: false,
  leftOut: ['9 items were left out (quarantine, in 1 partition, see _quarantine)'],
  outside: { partitions: 1, rows: 3 },
}

/** One with all sections, and with malicious names. */
export const SOME_INPUT: SummaryInput = {
  manifest: MANIFEST,
  manifestSha256: 'ef'.repeat(32),
  verdict: STOPPED,
  version: '1.0.0',
  rows: {
    people: 4321,
    sources: {
      groups: [
        { name: `</script><img src=x onerror="document.title='x'">`, rows: 500_000 },
        {
          name: 'A name that is far too long for the room that there is beside a bar of a chart',
          rows: 90_000,
        },
        { name: '\u05d0\u05d1\u05d2 {c} {value}', rows: 80_000 },
      ],
      more: 11,
      others: 530_000,
    },
    hash_types: { groups: [{ name: 'md5', rows: 700_000 }], more: 0, others: 0 },
    secrets: { groups: [{ name: 'digest', rows: 700_000 }], more: 0, others: 0 },
    months: ['2023-01', '2023-02', '2024-01', '2024-02'].map((month, i) => ({
      month,
      rows: 1000 + i,
      people: 10 + i,
    })),
  },
}

export function withManifest(changes: Partial<Manifest>, others: Partial<SummaryInput> = {}): SummaryInput {
  return { ...SOME_INPUT, ...others, manifest: { ...MANIFEST, ...changes } }
}

export const WHOLE: SummaryInput = withManifest(
  { partitions: partitions.map(({ key, rows }) => ({ key, state: 'done', rows: rows + 1, quarantined: 0 })) },
  {
    verdict: {
      ...STOPPED,
      ...{ state: 'complete', headline: 'complete: all 48 partitions', why: '', next: '', complete: true },
      ...{
        covers: { from: '2024-01-01T00:00:00Z', until: '2025-01-01T00:00:00Z' },
        waiting: [],
        leftOut: [],
      },
      partitions: { total: 48, done: 48, failed: 0, pending: 0 },
      outside: { partitions: 0, rows: 0 },
    },
  },
)
