import { rm, truncate } from 'node:fs/promises'
import { beforeAll, expect, test } from 'vitest'
import { some } from '../support/thorough.ts'
import { flip, openFile } from './damage.ts'
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

// Thirteen pages: the twelfth has the 100,000th row, so a part of it is encoded with the rows of the WAL, and the rest
// begins another WAL. The last page seals the shard. The chain prefetches, so two pages are in flight.
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

test('an export killed while its WAL is encoded ends as if nothing had happened', async () => {
  const secondWal = clean.calls.findIndex((call) => /^write _state\/open\.\w+\/0\.0\.log$/.test(call))
  const firstRowGroup = clean.calls.findIndex((call) => /^write _state\/open\.\w+\/0\.part$/.test(call))
  expect(firstRowGroup).toBeGreaterThan(0)
  expect(secondWal).toBeGreaterThan(firstRowGroup)
  const [header, rowGroup] = [firstRowGroup + 1, firstRowGroup + 2]
  // Torn row group; complete row group without its entry, fsynced and not; rest of the page without its entry. Both are
  // fsynced concurrently, so their order may differ.
  const faults = [
    `torn:${header}`,
    `torn:${rowGroup}`,
    `power:${rowGroup + 1}`,
    `kill:${rowGroup + 2}`,
    `power:${rowGroup + 3}`,
    `kill:${secondWal + 1}`,
    `power:${secondWal + 2}`,
    `kill:${secondWal + 3}`,
    `power:${secondWal + 4}`,
    `kill:${secondWal + 5}`,
  ]
  await concurrently(some(faults, 2), (fault) =>
    trial(LARGE, async (attempt) => {
      const expected = { scenario: LARGE, clean, figures, about: fault, interruptions: 1 }
      const struck = await attempt.run({ env: diskFault(attempt.workspace.output, fault) })
      expect(struck.signal, fault).toBe('SIGKILL')
      figures.kills++
      await expectWholeShards(attempt, expected)
      expect(await attempt.runHere(), fault).toMatchObject({ status: 'complete', error: null })
      await expectSameResult(attempt, expected)
    }),
  )
}, 600_000)

const DAMAGES: readonly (readonly [string, (path: string) => Promise<void>])[] = [
  ['a flipped bit at its beginning', (path) => flip(path, () => 0)],
  ['a flipped bit in its row group', (path) => flip(path, (size) => size >> 1)],
  ['its end missing', async (path) => truncate(path, 100_000)],
  ['nothing left of it', (path) => rm(path)],
]

test.each(some(DAMAGES, 1))(
  'an open shard of 100,000 rows with %s is healed without loss',
  async (about, damage) => {
    await trial(LARGE, async (attempt) => {
      const stopped = await attempt.run({ args: ['--max-requests', '12'] })
      expect(stopped.code, stopped.stderr).toBe(4)
      await openFile('.part', damage)(attempt.workspace.output)
      figures.faults++
      expect(await attempt.runHere(), about).toMatchObject({ status: 'complete', error: null })
      // Its rows are requested again.
      const interruptions = Number.POSITIVE_INFINITY
      await expectSameResult(attempt, { scenario: LARGE, clean, figures, about, interruptions })
    })
  },
)
