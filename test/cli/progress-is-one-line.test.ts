import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { progressText } from '../../src/cli/export-pipeline.ts'
import { progressOf, showStatus } from '../../src/cli/run-command-line.ts'
import { Screen } from '../../src/cli/terminal/screen.ts'
import type { Progress } from '../../src/run/index.ts'
import { Collector } from '../support/in-this-process.ts'

const PROGRESS: Progress = {
  ...{ partitionsTotal: 48, partitionsDone: 22, partitionsDoneBefore: 10, partitionsAdvanced: 12.5 },
  ...{ partitionsFailed: 1, rows: 5700, requests: 59, retries: 2, quarantined: 0, retrying: 0 },
  ...{ searchesSpent: 57, searchesRemaining: 999_943, pausedUntilMs: null },
  requestsAllowed: { requests: 441, by: 'budget' },
}
const NOW = 1_700_000_000_000

const shown = (changes: Partial<Progress> = {}): string =>
  progressText('acme', { ...PROGRESS, ...changes }, 12_000, NOW)

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

type Shown = { format?: 'pretty' | 'json'; isOff?: boolean; log?: (...line: unknown[]) => void }

function screenOn(stream: object, command: string, given: Shown = {}) {
  const { format = 'pretty', isOff = false, log = () => {} } = given
  vi.useFakeTimers({ toFake: ['performance', 'setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const written = Object.assign(new Collector(), stream)
  const screen = new Screen(written as unknown as NodeJS.WriteStream, {})
  const logging = { format, level: 'info' } as const
  screen.progress = progressOf(screen, logging, isOff)
  showStatus(command, { screen, log, logging })
  return { screen, text: () => written.text }
}

it.each(['pretty', 'json'] as const)(
  'without a terminal, a command says each half minute how far it is: %s',
  (format) => {
    const logged: unknown[] = []
    const { screen, text } = screenOn({}, 'verify', { format, log: (...line) => void logged.push(line) })
    vi.advanceTimersByTime(29_999)
    expect(text()).toBe('')
    vi.advanceTimersByTime(1)
    expect(text()).toBe('verify: at work for 0:30\n')
    screen.isAt('shard 3: a.parquet')
    screen.write('something else\n')
    vi.advanceTimersByTime(30_000)
    expect(text()).toBe('verify: at work for 0:30\nsomething else\nshard 3: a.parquet\n')
    screen.status = () => ({ text: 'acme: 3 rows', fields: { rows: 3 } })
    vi.advanceTimersByTime(30_000)
    expect(text().endsWith('acme: 3 rows\n')).toBe(format === 'pretty')
    expect(logged).toEqual(format === 'json' ? [['info', 'progress', { event: 'progress', rows: 3 }]] : [])
  },
)

it.each([{}, { isTTY: true, columns: 80, rows: 24 }])('--no-progress: nothing, on %j', (stream) => {
  const { screen, text } = screenOn(stream, 'run', { isOff: true })
  screen.show('a line')
  screen.isAt('shard 3: a.parquet')
  vi.advanceTimersByTime(90_000)
  expect(text()).toBe('')
})

it('on a terminal the status is redrawn in place, cut to it, until the work is over', () => {
  const { screen, text } = screenOn({ isTTY: true, columns: 20, rows: 24 }, 'verify')
  vi.advanceTimersByTime(1000)
  expect(text()).toBe('')
  screen.isAt('shard 3: credentials/a.parquet')
  vi.advanceTimersByTime(250)
  expect(text()).toBe('\r\x1b[Kshard 3: credent…')
  screen.clear()
  const cleared = text()
  vi.advanceTimersByTime(1000)
  expect(text()).toBe(cleared)
})
