import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Random, random as randomFrom } from '../support/random.ts'
import type { Fault, Sandbox } from '../support/sandbox.ts'
import { THOROUGH } from '../support/thorough.ts'
import { faultFigures } from './figures.ts'
import { concurrently } from './support.ts'
import {
  expectSameResult,
  expectWholeShards,
  type Scenario,
  type ScenarioSettings,
  scenario,
  trial,
  type Undisturbed,
  undisturbed,
} from './trial.ts'

// More of them: FAULT_KILLS=1000 npm run test:fault. Other instants: FAULT_SEED=<number>.
const KILLS = Number(process.env.FAULT_KILLS ?? (THOROUGH ? 60 : 2))
const SEED = Number(process.env.FAULT_SEED ?? 20_240_722)
// The last run of each export is not killed.
const KILLS_PER_EXPORT = THOROUGH ? 6 : 2

const SETTINGS: readonly ScenarioSettings[] = [
  { format: 'parquet', partitionBy: '[query, window]' },
  { format: 'csv', partitionBy: '[query, window]' },
  { format: 'parquet', partitionBy: '[window]' },
  { format: 'csv', partitionBy: 'none' },
]

const figures = faultFigures(`killed at random instants, seed ${SEED}`)

test(`exports killed ${KILLS} times at random instants end as if nothing had happened`, async () => {
  const scenarios = SETTINGS.map((settings) => scenario({ ...settings, sandbox: { latencyMs: [0, 20] } }))
  const all: { scenario: Scenario; clean: Undisturbed }[] = []
  const used = scenarios.slice(0, Math.ceil(KILLS / KILLS_PER_EXPORT))
  // Latency changes no result.
  for (const [number, each] of used.entries())
    all.push({ scenario: each, clean: await undisturbed(scenario(SETTINGS[number]!)) })
  const numbers = Array.from({ length: Math.ceil(KILLS / KILLS_PER_EXPORT) }, (_, number) => number)
  await concurrently(numbers, async (number) => {
    const chosen = all[number % all.length]!
    const random = randomFrom(SEED + number)
    // No run that has more to do ends before its kill.
    let lastSearch = 0
    const faults: Fault[] = [{ kind: 'hang', when: ({ ordinal }) => ordinal > lastSearch }]
    const held = { ...chosen.scenario, sandbox: { ...chosen.scenario.sandbox, faults } }
    await trial(held, async (attempt) => {
      const about = `seed ${SEED}, export ${number}`
      let kills = 0
      for (let run = 0; run < KILLS_PER_EXPORT; run++) {
        lastSearch = attempt.sandbox.requests.length + 5
        const over = new AbortController()
        const onStart = killAtRandom(random, attempt.sandbox, over.signal)
        const struck = await attempt.run({ onStart }).finally(() => over.abort())
        if (struck.signal === 'SIGKILL') kills++
        else expect(struck.code, `${about}\n${struck.stderr}`).toBe(0)
        await expectWholeShards(attempt, { ...chosen, figures, about, interruptions: kills })
      }
      expect(kills, about).toBeGreaterThan(0)
      figures.kills += kills
      lastSearch = Number.POSITIVE_INFINITY
      const last = await attempt.run()
      expect(last.code, `${about}\n${last.stderr}`).toBe(0)
      await expectSameResult(attempt, { ...chosen, figures, about, interruptions: kills })
    })
  })
}, 3_600_000)

/** Some milliseconds after one of the next searches arrives; one time in six, while the process still starts. */
function killAtRandom(random: Random, sandbox: Sandbox, over: AbortSignal) {
  const below = (limit: number): number => Math.floor(random() * limit)
  const waitMs = below(6) === 0 ? below(1000) : null
  const search = sandbox.requests.length + 1 + below(3)
  const afterMs = below(40)
  return (kill: (signal: NodeJS.Signals) => void): void => {
    void (async () => {
      if (waitMs !== null) await delay(waitMs)
      else while (sandbox.requests.length < search && !over.aborted) await delay(1)
      await delay(afterMs)
      kill('SIGKILL')
    })()
  }
}
