import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { type Fault, searchesOf } from '../support/sandbox.ts'
import type { Ended } from './support.ts'
import { expectSameResult, scenario, type Trial, trial, type Undisturbed, undisturbed } from './trial.ts'

const EXPORT = scenario({ format: 'csv' })

let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(EXPORT)
})

// Lock files that processes left behind, here or elsewhere: `test/state/lock-is-held-by-one-living-process`.
describe('during a run', () => {
  test('a second one exits 5 at once, and read-only commands work', async () => {
    await whileHeld(async ({ run, command, sandbox }, { pid }) => {
      const before = sandbox.requests.length
      for (const args of [[], ['--fresh', '--yes']]) {
        const second = await exits(5, run({ args }))
        expect(second.stderr).toMatch(
          new RegExp(`process ${pid} on host ${hostname()} since ${new Date().getUTCFullYear()}-`),
        )
      }
      expect(sandbox.requests.length).toBe(before)
      for (const name of ['status', 'plan', 'verify']) {
        const reader = await command(name, { args: ['--json'] })
        expect(reader.code, `${name}\n${reader.stderr}`).toBe(0)
      }
    })
  })

  test('a stopped process keeps its lock; a killed one loses it at once, and no row is lost', async () => {
    await whileHeld(async (attempt, holder) => {
      holder.send('SIGSTOP')
      expect((await attempt.run()).code).toBe(5)
      holder.send('SIGCONT')
      expect((await attempt.run()).code).toBe(5)
      holder.send('SIGSTOP')
      holder.send('SIGKILL')
      expect((await holder.ended).signal).toBe('SIGKILL')
      await exits(0, attempt.run())
      await expectSameResult(attempt, { scenario: EXPORT, clean, about: 'taken over', interruptions: 1 })
      const { runs } = await attempt.workspace.manifest()
      // The killed run recorded no total, but its pages are committed.
      expect(runs).toMatchObject([{ status: 'interrupted', requests: 3 }, { status: 'complete' }])
    })
  })
})

type Holder = { readonly pid: number; send(signal: NodeJS.Signals): void; readonly ended: Promise<Ended> }

/** Does the work while a run holds the lock and waits for a response that never comes. */
async function whileHeld(work: (attempt: Trial, holder: Holder) => Promise<void>): Promise<void> {
  const faults: Fault[] = [{ kind: 'hang', requests: [4, 5] }]
  await trial({ ...EXPORT, sandbox: { ...EXPORT.sandbox, faults } }, async (attempt) => {
    let pid = 0
    let send: Holder['send'] = () => {}
    const ended = attempt.run({
      onStart(kill, started) {
        pid = started
        send = kill
      },
    })
    while (searchesOf(attempt.sandbox.requests).length < 5) await delay(5)
    try {
      await work(attempt, { pid, send, ended })
    } finally {
      send('SIGKILL')
      await ended
    }
  })
}
