import type { HeatCell, SummaryPageData } from '../../src/report/index.ts'

const months = Array.from({ length: 12 }, (_, month) => `2024-${String(month + 1).padStart(2, '0')}`)

const CELLS: readonly (readonly [least: number, most: number | null])[] = [
  [0, 0],
  [1, 9],
  [10, 99],
  [57, 57],
  [340, 349],
  [1200, 1299],
  [10_000, 99_999],
  [1_000_000, null],
]

function cellAt(i: number): HeatCell {
  const [least, most] = CELLS[i % 8]!
  return {
    least,
    most,
    state: (['done', 'done', 'done', 'failed', 'done', 'partial', 'done'] as const)[i % 7]!,
  }
}

/** One with all sections, and with malicious names. */
export const SOME_REPORT: SummaryPageData = {
  version: 1,
  pipeline: 'acme-backfill',
  resource: 'credentials',
  format: 'parquet',
  written_at: '2024-12-31T08:00:00.000Z',
  spillway: '1.0.0',
  from: 'checkpoint',
  verdict: {
    complete: false,
    partitions: { total: 144, done: 120, failed: 6, partial: 6, pending: 12 },
    left_out: [],
    span: { from: '2024-01-01T00:00:00Z', until: '2025-01-01T00:00:00Z' },
  },
  request: {
    queries: ['domain.scatterholt.com', 'domain.quillmere.net', 'email.case-17'],
    queries_total: 60,
    retired: 1,
    windows: { from: '2024-01-01T00:00:00Z', until: 'now', every: 'a window each month' },
    masking: { secret: 'hmac', identity: 'hmac' },
    columns: ['id', 'domain', 'identity_name', 'hash', 'hash_type', 'imported_at'],
    config_digest: 'ab'.repeat(32),
  },
  provenance: {
    host: 'api.example.com',
    organization: 'acme <b>',
    manifest: 'ef'.repeat(32),
    signed: true,
    pruned: { partitions: 12, before: '2023-01-01T00:00:00Z' },
  },
  rows: {
    rows: 1_234_567,
    rows_at_most: null,
    rows_at_least: null,
    forgotten: 0,
    bytes: 98_765_000,
    shards: 900,
    new_rows: 12_345,
    quarantined: null,
    repeated: 17,
    counted_rows: 1_200_000,
    timeline: {
      unit: 'month',
      groups: months.map((name, i) => ({ name, rows: 50_000 + 9000 * ((i * 7) % 11) })),
      others: null,
      axis: months,
      incomplete: ['2024-11', '2024-12'],
    },
    sources: {
      groups: [
        { name: `</script><img src=x onerror="document.title='x'">`, rows: 500_000 },
        {
          name: 'A name that is far too long for the room that there is beside a bar of a chart',
          rows: 90_000,
        },
        { name: '\u05d0\u05d1\u05d2 {c} {value}', rows: 80_000 },
      ],
      others: 530_000,
    },
    hash_types: {
      groups: [
        { name: 'md5', rows: 700_000 },
        { name: 'no type', rows: 500_000 },
      ],
      others: 0,
    },
    nulls: [
      { column: 'domain', share: 'few' },
      { column: 'hash', share: 12 },
      { column: 'id', share: 'none' },
    ],
    heat: {
      columns: months,
      rows: ['domain.quillmere.net', 'domain.scatterholt.com', '58 others'].map((query, row) => ({
        query,
        cells: months.map((_, i) => {
          if (i + row === 11) return { least: 0, most: 0, state: 'pending' as const }
          return i + row > 11 ? null : cellAt(i + row)
        }),
      })),
      folded: 58,
    },
  },
  runs: {
    runs: ['complete', 'failed', 'interrupted'].map((status, i) => ({
      started_at: `2024-12-0${i + 1}T02:00:00.000Z`,
      finished_at: null,
      status,
      rows: i === 2 ? null : 500_000,
      requests: 60 + i,
      searches: i % 2 === 0 ? null : 6000 + i,
      min_requests: i === 2 ? null : 55,
      left: i === 2 ? null : 9000,
      retries: i,
      failures: i,
      repeated: 0,
      quarantined: null,
      spillway: '1.0.0',
    })),
    runs_total: 30,
    reasons: { groups: [{ name: 'id: Invalid input', rows: 7 }], others: null },
    failures: [{ partition: 'domain.quillmere.net/2024-01-01..2024-02-01', kind: 'transient' }],
    failures_total: 1,
  },
  shards: Array.from({ length: 20 }, (_, i) => ({
    path: `credentials/query=domain.scatterholt.com/import_window=2024-01-01/part-${String(i).padStart(5, '0')}.parquet`,
    rows: i % 8,
    kilobytes: 280 + i,
    sha256: 'cd'.repeat(32),
  })),
}
