import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { some, THOROUGH } from '../support/thorough.ts'
import { concurrently, diskFault } from './support.ts'
import {
  expectSameResult,
  expectWholeShards,
  SOME,
  sampledCalls,
  scenario,
  trial,
  undisturbed,
} from './trial.ts'

const EXPORTS = [
  { format: 'parquet', where: /./, ofLog: 2, others: 1 },
  // Calls that do not depend on the format or the folders are covered above.
  {
    format: 'csv',
    partitionBy: 'none',
    where: /^(?:rename _state\/sealed|link credentials)/,
    ofLog: 1,
    others: 1,
  },
  // Has one shard, which belongs to no page.
  {
    format: 'parquet',
    sandbox: { records: 0 },
    where: /credentials|manifest|SUCCESS/,
    ofLog: 1,
    others: 1,
  },
] as const

describe.each(some(EXPORTS, 1))(
  'a $format export, $partitionBy $sandbox',
  ({ where, ofLog, others, ...settings }) => {
    test('ends as if nothing had happened when it is run again', async () => {
      const export_ = scenario(settings)
      const clean = await undisturbed(export_)
      const chosen = sampledCalls(clean.calls, SOME).filter((number) => where.test(clean.calls[number - 1]!))
      // The log decides what counts, so most are calls to it. `shards-survive-crashes` and
      // `lost-power-takes-nothing-back` try every call, without a process.
      const isOfLog = (number: number): boolean => OF_LOG.test(clean.calls[number - 1]!)
      const numbers = [
        ...some(chosen.filter(isOfLog), ofLog),
        ...some(
          chosen.filter((number) => !isOfLog(number)),
          others,
        ),
      ]
      const faults = numbers.flatMap((number) => {
        const all = faultsAt(clean.calls[number - 1]!, number)
        return THOROUGH ? all : all.slice(-1)
      })
      await concurrently(faults, (fault) =>
        trial(export_, async (attempt) => {
          const expected = { scenario: export_, clean, about: fault, interruptions: 1 }
          const struck = await attempt.run({ env: diskFault(attempt.workspace.output, fault) })
          // Calls of the two chains interleave, so a call's number may stand for another one, or for none.
          if (struck.signal !== 'SIGKILL') expect(struck.code, `${fault}\n${struck.stderr}`).toBe(0)
          await expectWholeShards(attempt, expected)
          expect(await attempt.runHere(), fault).toMatchObject({ status: 'complete', error: null })
          await expectSameResult(attempt, expected)
        }),
      )
    })
  },
)

test('a shard keeps its former name until its folder with the new one is forced to the disk', async () => {
  const { calls } = await undisturbed(scenario({ format: 'csv' }))
  const forced = calls.flatMap((call, at) =>
    call.startsWith('link credentials/')
      ? [calls.indexOf(`sync ${dirname(call.slice('link '.length))}`, at)]
      : [],
  )
  const unlinked = calls.flatMap((call, at) => (call.startsWith('unlink _state/sealed/') ? [at] : []))
  expect(unlinked.length).toBe(forced.length)
  for (const [number, at] of unlinked.entries())
    expect(forced.filter((each) => each < at).length, `call ${at}`).toBeGreaterThan(number)
})

/** Commits are files in the staging folder until they get their names. */
const OF_LOG = / _state\/(?:log\b|open\.\w+\/\d+$)/

/**
 * What to try at a call; the hardest comes last. A kill keeps everything that is written, so it is tried before every call
 * that changes a file. A missing fsync shows only when the power fails before it is done.
 */
function faultsAt(call: string, number: number): string[] {
  if (/^sync _state\/(?:log|open\.\w+\/\d+)$/.test(call)) return [`power:${number}`, `holes:${number}`]
  if (/^(?:sync|datasync) /.test(call)) return [`power:${number}`]
  return call.startsWith('write ') ? [`kill:${number}`, `torn:${number}`] : [`kill:${number}`]
}
