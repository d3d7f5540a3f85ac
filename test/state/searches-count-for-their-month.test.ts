import { expect, test } from 'vitest'
import { foldLines } from '../../src/state/checkpoint-state.ts'
import { requestsByMonth } from '../../src/state/index.ts'
import type { Fact, HeaderLine } from '../../src/state/lines.ts'
import { snapshot } from '../../src/state/snapshot.ts'

const HEADER: HeaderLine = { kind: 'header', version: 2, pipeline: 'p', created_at: '', settings: {} }
const begun = (run: string, at: string): Fact => ({ kind: 'run', run, started_at: at, version: '1' })
const sent = (requests: number): Fact => ({
  kind: 'failed',
  partition: 'a/all',
  requests,
  error: { kind: 'data', message: '' },
})
const ended = (run: string, requests: number): Fact => ({
  kind: 'end',
  run,
  finished_at: '2024-02-01T00:00:10.000Z',
  status: 'budget',
  requests,
  retries: 0,
})

const LINES: readonly Fact[] = [
  begun('a', '2023-12-31T10:00:00.000Z'),
  sent(2),
  { kind: 'month', run: 'a', month: '2024-01', before: 3 },
  sent(7),
  ended('a', 20),
  // Killed, after it had gone into February.
  begun('b', '2024-01-31T23:59:00.000Z'),
  sent(4),
  { kind: 'month', run: 'b', month: '2024-02', before: 4 },
  sent(6),
  begun('c', '2024-02-20T00:00:00.000Z'),
  sent(1),
  ended('c', 1),
]

function folded(lines: Iterable<Fact>) {
  const folding = foldLines(HEADER)
  for (const line of lines) folding.apply(line)
  return folding.state
}

test('searches count for the month that they were sent in, those of killed runs too', () => {
  const state = folded(LINES)
  const months = { '2023-12': 3, '2024-01': 17 + 4, '2024-02': 6 + 1 }
  expect(Object.fromEntries(requestsByMonth(state.runs))).toEqual(months)
  // A rewrite of the checkpoint keeps it.
  const again = folded([...snapshot(state, null)].slice(1))
  expect(Object.fromEntries(requestsByMonth(again.runs))).toEqual(months)
})
