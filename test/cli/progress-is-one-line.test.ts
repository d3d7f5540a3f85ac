import { describe, expect, it } from 'vitest'
import { progressText } from '../../src/cli/progress/progress-view.ts'
import type { Progress } from '../../src/run/index.ts'

const PROGRESS: Progress = {
  ...{ partitionsTotal: 48, partitionsDone: 22, partitionsDoneBefore: 10, partitionsAdvanced: 12.5 },
  ...{ partitionsFailed: 1, rows: 5700, requests: 59, retries: 2, quarantined: 0, retrying: 0 },
  ...{ searchesSpent: 57, searchesRemaining: 999_943, pausedUntilMs: null },
  requestsAllowed: { requests: 441, by: 'budget' },
}
const NOW = 1_700_000_000_000

const shown = (changes: Partial<Progress> = {}): string =>
  progressText({ name: 'acme', progress: { ...PROGRESS, ...changes }, elapsedMs: 12_000, nowMs: NOW })

describe('the progress of a run', () => {
  it('is one line with everything there is to tell, what matters most first', () => {
    expect(shown()).toBe(
      'acme: 22 of 48 partitions, 10 by earlier runs, 1 failed, 5,700 rows, 475/s, 0:12, about 25 s to go, 59 requests, 999,943 searches left',
    )
    expect(shown({ retrying: 2, quarantined: 3 })).toMatch(
      /59 requests, 2 to be sent again, 999,943 searches left, 3 quarantined$/,
    )
  })

  it('names a pause that the service demanded, and begins as it did before', () => {
    expect(shown({ pausedUntilMs: NOW + 9000 })).toMatch(
      /^acme: 22 of 48 partitions, 10 by earlier runs, paused by a 429 for 9 s, /,
    )
    expect(shown({ pausedUntilMs: NOW })).toBe(shown())
  })

  it.each([
    ['budget', 20],
    ['quota', 3],
  ] as const)('says that the %s ends before the export does', (by, requests) => {
    expect(shown({ requestsAllowed: { requests, by } })).toContain(`0:12, ${by} ends first, in about 5 s`)
  })

  it('estimates no end before there is data for it', () => {
    expect(shown({ requests: 4 })).not.toContain('to go')
    expect(shown({ partitionsAdvanced: 0 })).not.toContain('to go')
  })
})
