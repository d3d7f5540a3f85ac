import { execFile } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { faultFigures } from './figures.ts'
import { CLI, diskFault, type Ended, inLanes } from './support.ts'
import { expectSameResult, expectWholeShards, scenario, trial, undisturbed } from './trial.ts'

const figures = faultFigures('disk full or failing at every write')

const FAILING = scenario({ format: 'parquet', partitionBy: '[query, window]' })

describe('a disk that', () => {
  test.each([
    ['is full from any write on', 'full', /^(?:create|mkdir|write|rename) /, 'The disk is full'],
    ['fails at any flush', 'eio', /^datasync /, 'The disk reports an input/output error'],
  ])(
    '%s ends a run cleanly, and a later one completes it',
    async (_, mode, calls, message) => {
      const clean = await undisturbed(FAILING)
      const faults = clean.calls.flatMap((call, index) => (calls.test(call) ? [`${mode}:${index + 1}`] : []))
      let struck = 0
      await inLanes(faults, (fault) =>
        trial(FAILING, async (attempt) => {
          const expected = { scenario: FAILING, clean, figures, about: fault, interruptions: 1 }
          const stopped = await attempt.run({ env: diskFault(attempt.place.output, fault) })
          if (stopped.code !== 0) {
            struck++
            expect(stopped.code, `${fault}\n${stopped.stderr}`).toBe(1)
            expect(stopped.stderr, fault).toContain(message)
            expectDecentMessage(stopped, attempt.sandbox.token)
          }
          await expectWholeShards(attempt, expected)
          expect(await attempt.runHere(), fault).toMatchObject({ status: 'complete', error: null })
          await expectSameResult(attempt, expected)
        }),
      )
      // Calls interleave, so some faults find nothing to strike.
      expect(struck).toBeGreaterThan(faults.length / 2)
      figures.faults += struck
    },
    600_000,
  )
})

// A limit that the system itself keeps, as a cross-check of the errors made up above.
test.skipIf(process.platform === 'win32')('a real limit of file sizes ends a run cleanly', async () => {
  const clean = await undisturbed(FAILING)
  await trial(FAILING, async (attempt) => {
    const { place } = attempt
    const script = `ulimit -f 4; exec "$0" "$@"`
    const stopped = await new Promise<Ended>((resolve) => {
      const args = ['-c', script, process.execPath, CLI, 'run', place.pipeline]
      const env = { PATH: process.env.PATH, ...place.env }
      execFile('sh', args, { cwd: place.folder, env }, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null
        resolve({ code, signal: error?.signal ?? null, stdout, stderr })
      })
    })
    figures.faults++
    expect(stopped, stopped.stderr).toMatchObject({ code: 1, signal: null })
    expect(stopped.stderr).toContain('The file grew beyond the allowed size')
    expectDecentMessage(stopped, attempt.sandbox.token)
    const resumed = await attempt.run()
    expect(resumed.code, resumed.stderr).toBe(0)
    await expectSameResult(attempt, { scenario: FAILING, clean, figures, about: 'ulimit', interruptions: 1 })
  })
})

function expectDecentMessage({ stdout, stderr }: Ended, secret: string): void {
  expect(stderr).not.toMatch(/^\s+at /m)
  expect(stderr + stdout).not.toContain(secret)
}
