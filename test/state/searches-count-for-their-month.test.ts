import { expect, test } from 'vitest'
import { JournalFold } from '../../src/state/checkpoint/fold-journal.ts'
import { snapshot } from '../../src/state/checkpoint/snapshot.ts'
import { type JournalEntry, searchesByMonth } from '../../src/state/index.ts'
import { begun, ended, HEADER } from './lines.ts'

const beganAt = (run: string, started_at: string): JournalEntry => begun(run, { started_at })
const spent = (searches: number): JournalEntry => ({ kind: 'measured', spent: searches })
const endedAfter = (run: string, searches: number): JournalEntry => ended(run, { status: 'budget', searches })

const LINES: readonly JournalEntry[] = [
  beganAt('a', '2023-12-31T10:00:00.000Z'),
  spent(2),
  { kind: 'month', run: 'a', month: '2024-01', searches: 3 },
  spent(9),
  endedAfter('a', 20),
  // Killed in February.
  beganAt('b', '2024-01-31T23:59:00.000Z'),
  {
    kind: 'failed',
    partition: 'a/all',
    requests: 1,
    error: { kind: 'data', message: '', cause: '', next: '' },
  },
  spent(4),
  { kind: 'month', run: 'b', month: '2024-02', searches: 4 },
  spent(10),
  beganAt('c', '2024-02-20T00:00:00.000Z'),
  spent(1),
  endedAfter('c', 1),
]

function folded(lines: Iterable<JournalEntry>) {
  const fold = new JournalFold(HEADER)
  fold.apply(lines, fold.logEnd, [])
  return fold
}

test('searches count for the month in which they were sent, those of killed runs too', () => {
  const state = folded(LINES)
  const months = { '2023-12': 3, '2024-01': 17 + 4, '2024-02': 6 + 1 }
  expect(Object.fromEntries(searchesByMonth(state.runs))).toEqual(months)
  // A rewrite of the checkpoint keeps it.
  const again = folded([...snapshot(state)].slice(1))
  expect(Object.fromEntries(searchesByMonth(again.runs))).toEqual(months)
})

test.each<Partial<JournalEntry>>([{ tells_searches: true }, { left: 3 }, { page_size: 50 }])(
  'a rewrite of the checkpoint keeps %j where nothing else of the service is known',
  (known) => {
    const state = folded([{ kind: 'measured', ...known } as JournalEntry])
    expect(folded([...snapshot(state)].slice(1))).toEqual(state)
    expect(state).not.toEqual(folded([]))
  },
)

test('the last 32 times of pages count, and none from before the service showed a limit', () => {
  const measured = (rows: number): JournalEntry => ({ kind: 'measured', times: [[rows, 90]] })
  const rows = Array.from({ length: 40 }, (_, index) => index)
  const { service } = folded(rows.map(measured))
  expect(service.times).toEqual(rows.slice(-32).map((each) => [each, 90]))
  const limited = folded([measured(1), { kind: 'limit', size: 50 }, measured(2)])
  expect(limited.service).toMatchObject({ limit: 50, times: [[2, 90]] })
})
