import { rm } from 'node:fs/promises'
import { beforeAll, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { change, commitsIn, flipped } from './damage.ts'
import { faultFigures } from './figures.ts'
import { concurrently, diskFault } from './support.ts'
import {
  expectSameResult,
  expectWholeShards,
  type Scenario,
  trial,
  type Undisturbed,
  undisturbed,
} from './trial.ts'

const figures = faultFigures('killed or damaged around the encoding of 100,000 rows')

// Thirteen pages: the twelfth has the 100,000th row. They are committed to the log while its row group is encoded behind
// them, and the last page seals the shard. The chain prefetches, so two pages are in flight.
const LARGE: Scenario = {
  yaml: `
name: chunks
service: { base_url: "\${SPILLWAY_BASE_URL}", requests_per_second: 1000 }
extract: { domains: [scatterholt.com], page_size: 9000, concurrency: 2 }
load: { format: parquet, path: out }
`,
  sandbox: { requestsPerSecond: 0, records: 115_000, seed: 'chunks', sources: 20 },
  concurrency: 2,
  sameBytes: true,
}

let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(LARGE)
})

test('an export killed around its row groups ends as if nothing had happened', async () => {
  // The file of the shard is begun with its first row group, sealed, named by a commit and published.
  const firstOf = (pattern: RegExp): number => {
    const index = clean.calls.findIndex((call) => pattern.test(call))
    expect(index, String(pattern)).toBeGreaterThan(0)
    return index + 1
  }
  const sealed = firstOf(/^rename _state\/sealed\//)
  const published = firstOf(/^link credentials\//)
  const commits = clean.calls.flatMap((call, i) => (call.startsWith('rename _state/log/') ? [i + 1] : []))
  const named = commits.findLast((number) => number < published)!
  const rowGroups = commits.filter((number) => number < sealed).slice(-3)
  const faults = [
    // One call after the other while row groups are encoded and pages are committed.
    ...rowGroups.flatMap((number) => [`kill:${number}`, `torn:${number - 2}`, `power:${number + 1}`]),
    ...[sealed, named, published].flatMap((number) => [
      `kill:${number}`,
      `power:${number}`,
      `holes:${number + 1}`,
      `kill:${number + 2}`,
    ]),
  ]
  const tried = some(faults, 1)
  await concurrently(tried, (fault) =>
    trial(LARGE, async (attempt) => {
      const expected = { scenario: LARGE, clean, figures, about: fault, interruptions: 1 }
      const struck = await attempt.run({ env: diskFault(attempt.workspace.output, fault) })
      // Pages that arrive together share a commit, so call n may be another one: a torn write needs a write.
      if (struck.signal === 'SIGKILL') figures.kills++
      else expect(struck.code, struck.stderr).toBe(0)
      await expectWholeShards(attempt, expected)
      expect(await attempt.runHere(), fault).toMatchObject({ status: 'complete', error: null })
      await expectSameResult(attempt, expected)
    }),
  )
  expect(figures.kills).toBeGreaterThan(tried.length / 2)
})

const DAMAGES: readonly (readonly [string, (path: string) => Promise<void>])[] = [
  ['a flipped bit at their end', (path) => change(path, (bytes) => flipped(bytes, bytes.length - 1))],
  ['their end missing', (path) => change(path, (bytes) => bytes.subarray(0, 100_000))],
  ['nothing left of them', (path) => rm(path)],
]

// `heals-or-refuses-damaged-state` damages rows in the log of small pages.
test.each(DAMAGES)(
  'rows of a row group in the log with %s are healed without loss',
  async (about, damage) => {
    await trial(LARGE, async (attempt) => {
      await exits(4, attempt.run({ args: ['--max-requests', '12'] }))
      const commits = await commitsIn(attempt.workspace.output)
      expect(commits.length).toBeGreaterThan(10)
      await damage(commits[5]!)
      figures.faults++
      expect(await attempt.runHere(), about).toMatchObject({ status: 'complete', error: null })
      // Its rows are requested again.
      const interruptions = Number.POSITIVE_INFINITY
      await expectSameResult(attempt, { scenario: LARGE, clean, figures, about, interruptions })
    })
  },
)
