import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ProgressMoment, progressLines, progressText } from '../../src/cli/progress/progress-lines.ts'
import { styleFor, widthOf } from '../../src/cli/terminal/screen.ts'
import type { Progress } from '../../src/run/index.ts'

const amount = fc.integer({ min: 0, max: 1_000_000_000 })
const time = fc.option(amount)
const moment: fc.Arbitrary<ProgressMoment> = fc.record({
  name: fc.stringMatching(/^[a-z0-9-]{1,100}$/),
  progress: fc.record({
    partitionsTotal: amount,
    partitionsDone: amount,
    partitionsDoneBefore: amount,
    partitionsAdvanced: fc.double({ min: 0, max: 1e9, noNaN: true }),
    partitionsFailed: amount,
    rows: amount,
    requests: amount,
    retries: amount,
    quarantined: amount,
    searchesSpent: time,
    searchesRemaining: time,
    requestsAllowed: fc.option(
      fc.record({ requests: amount, by: fc.constantFrom('budget' as const, 'quota' as const) }),
    ),
    pausedUntilMs: time,
    waits: fc.record({
      retry: fc.option(
        fc.record({ number: amount, of: amount, untilMs: amount, reason: fc.string({ unit: 'binary' }) }),
      ),
      retries: amount,
      tokenSinceMs: time,
      responseSinceMs: time,
      diskSinceMs: time,
    }),
  }),
  elapsedMs: amount,
  nowMs: amount,
  columns: fc.integer({ min: 2, max: 300 }),
  pace: fc.constant('pace: up to 5 requests a second, 4 pages at a time'),
})

const PROGRESS: Progress = {
  partitionsTotal: 48,
  partitionsDone: 22,
  partitionsDoneBefore: 10,
  partitionsAdvanced: 12.5,
  partitionsFailed: 1,
  rows: 5700,
  requests: 59,
  retries: 2,
  quarantined: 0,
  searchesSpent: 57,
  searchesRemaining: 999_943,
  requestsAllowed: { requests: 441, by: 'budget' },
  pausedUntilMs: null,
  waits: { retry: null, retries: 0, tokenSinceMs: null, responseSinceMs: null, diskSinceMs: null },
}
const NOW = 1_700_000_000_000

it('is one line in a log, with everything there is to tell', () => {
  const moment = { name: 'acme', progress: PROGRESS, elapsedMs: 12_000, nowMs: NOW, columns: 20, pace: '' }
  const text =
    'acme: 22 of 48 partitions, 10 by earlier runs, 1 failed, 5,700 rows, 475/s, 59 requests, 999,943 searches left, 0:12, about 25 s to go'
  expect(progressText(moment)).toBe(text)
  const pausedUntilMs = NOW + 9000
  expect(progressText({ ...moment, progress: { ...PROGRESS, pausedUntilMs } })).toBe(
    `${text}, the service responded with 429; requests go on in 9 s`,
  )
})

function shown(columns: number, changes: Partial<Progress> = {}): readonly string[] {
  const now = {
    name: 'acme-backfill',
    elapsedMs: 12_000,
    nowMs: NOW,
    pace: 'pace: up to 5 requests a second',
  }
  return progressLines({ ...now, columns, progress: { ...PROGRESS, ...changes } }, styleFor(false)).split(
    '\n',
  )
}

describe('the progress of a run', () => {
  it('is always three lines, none as wide as the terminal', () => {
    fc.assert(
      fc.property(moment, (now) => {
        const lines = progressLines(now, styleFor(false)).split('\n')
        expect(lines).toHaveLength(3)
        for (const line of lines) expect(widthOf(line)).toBeLessThan(now.columns)
      }),
    )
  })

  it('shows everything at 80 columns, with earlier runs kept apart', () => {
    expect(shown(80)).toEqual([
      'acme-backfill  ╍╍━━━───────  22 of 48 partitions  10 by earlier runs  1 failed',
      '5,700 rows, 475/s  59 requests  999,943 searches left  0:12  about 25 s to go',
      'pace: up to 5 requests a second',
    ])
  })

  it('leaves out what matters least where large numbers have no room', () => {
    const large = {
      partitionsTotal: 1_000_000,
      partitionsDone: 223_456,
      partitionsDoneBefore: 100_000,
      partitionsAdvanced: 123_456.5,
      rows: 12_345_678,
      requests: 123_456,
      requestsAllowed: { requests: 999_943, by: 'quota' },
    } as const
    expect(shown(80, large).slice(0, 2)).toEqual([
      'acme-backfill  ╍━──────────  223,456 of 1,000,000 partitions  1 failed',
      '12,345,678 rows, 1,028,807/s  123,456 requests  0:12  about 2 min to go',
    ])
  })

  it('keeps what matters in a narrow window', () => {
    expect(shown(50)).toEqual([
      'acme-backfill  22 of 48 partitions  1 failed',
      '5,700 rows, 475/s  0:12  about 25 s to go',
      'pace: up to 5 requests a second',
    ])
    expect(shown(24).slice(0, 2)).toEqual(['22 of 48 partitions', '5,700 rows, 475/s  0:12'])
  })

  it.each([
    ['budget', 20],
    ['quota', 3],
  ] as const)('says that the %s ends before the export does', (by, requests) => {
    const text = `0:12  ${by} ends first, in about 5 s`
    const requestsAllowed = { requests, by }
    expect(shown(80, { requestsAllowed })[1]).toContain(text)
    expect(shown(80, { requestsAllowed, rows: 12_345_678 })[1]).toContain(text)
    expect(shown(50, { requestsAllowed, rows: 12_345_678 })[1]).toMatch(/ {2}0:12$/)
  })

  it('estimates no end before there is data for it', () => {
    expect(shown(80, { requests: 4 })[1]).toMatch(/ {2}0:12$/)
    expect(shown(80, { partitionsAdvanced: 0 })[1]).toMatch(/ {2}0:12$/)
  })

  const { waits } = PROGRESS
  const retry = { number: 2, of: 8, untilMs: NOW + 3400, reason: 'The service responded with 503' }
  it.each<[string, Partial<Progress>]>([
    ['the service responded with 429; requests go on in 9 s', { pausedUntilMs: NOW + 9000 }],
    ['retry 2 of 8 in 4 s: The service responded with 503', { waits: { ...waits, retry, retries: 1 } }],
    [
      'retry 2 of 8 in 4 s, and 2 more: The service responded with 503',
      { waits: { ...waits, retry, retries: 3 } },
    ],
    [
      'waits for a token: 4 s',
      { waits: { ...waits, tokenSinceMs: NOW - 3500, responseSinceMs: NOW - 3500 } },
    ],
    ['waits for the disk: 1:40', { waits: { ...waits, diskSinceMs: NOW - 99_600 } }],
    ['waits for a response: 12 s', { waits: { ...waits, responseSinceMs: NOW - 12_000 } }],
    [
      'pace: up to 5 requests a second',
      { pausedUntilMs: NOW, waits: { ...waits, responseSinceMs: NOW - 900 } },
    ],
  ])('shows what the run waits for: %s', (text, changes) => {
    expect(shown(80, changes)[2]).toBe(text)
  })
})
