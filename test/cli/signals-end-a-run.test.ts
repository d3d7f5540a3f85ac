import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { expect, it, onTestFinished, vi } from 'vitest'
import { Signals } from '../../src/cli/terminal/signals.ts'
import { CLI } from '../support/run-cli.ts'
import { withoutDeadline } from '../support/without-deadline.ts'
import { PIPELINE } from '../support/workspace.ts'
import { THREE_MONTHS, trial } from './trial.ts'

// What test/fault/stops-on-signals leaves out: terminals, and several pipelines.

/** The end in order takes a busy machine longer than the nine seconds after which a command exits without it. */
const UNHURRIED = withoutDeadline(9000)

it('SIGHUP from both the system and the shell ends a run in order', async () => {
  let letGo = (): void => {}
  const held = new Promise<void>((resolve) => (letGo = resolve))
  const faults = [{ kind: 'hold', until: held }] as const
  const { sandbox, start } = await trial({ extract: { page_size: 5 } }, { faults }, UNHURRIED)
  const running = start('run', PIPELINE, '--json')
  await running.until(() => sandbox.requests.length > 0)
  running.child.kill('SIGHUP')
  await running.until((stderr) => stderr.includes('Stopping'))
  running.child.kill('SIGHUP')
  letGo()
  const { code, stdout } = await running.result
  expect(code).toBe(129)
  expect(JSON.parse(stdout)).toMatchObject({ status: 'interrupted' })
})

// Runs a command on a terminal of its own, closes the terminal once a line comes in, and prints how the command ended.
const ON_A_TERMINAL = `
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0: os.execv(sys.argv[1], sys.argv[1:])
sys.stdin.readline()
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`
const hasPython = spawnSync('python3', ['-c', 'import os, pty; os.waitstatus_to_exitcode']).status === 0

it.skipIf(!hasPython)(
  'closing the terminal ends a run in order, although nobody reads its output',
  async () => {
    // After the first search, every partition waits for its permit.
    const { sandbox, folder, env } = await trial({
      service: { requests_per_second: 0.001 },
      extract: { windows: { ...THREE_MONTHS, per_chain: 1 } },
    })
    const child = spawn('python3', ['-c', ON_A_TERMINAL, process.execPath, CLI, 'run', PIPELINE], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? '', ...env, ...UNHURRIED },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    await expect.poll(() => sandbox.requests.length).toBeGreaterThan(0)
    child.stdin.write('close\n')
    const [code] = await once(child.stdout, 'data')
    expect(String(code)).toBe('129\n')
  },
)

it('a signal aborts requests after five seconds, and ends a command that goes on before ten have passed', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never)
  onTestFinished(() => exit.mockRestore())
  return new Signals().during(
    async ({ stop, abort }) => {
      // Others in this process may listen as well.
      process.listeners('SIGTERM').at(-1)?.('SIGTERM')
      expect([stop.aborted, abort.aborted]).toEqual([true, false])
      vi.advanceTimersByTime(4999)
      expect(abort.aborted).toBe(false)
      vi.advanceTimersByTime(1)
      expect(abort.aborted).toBe(true)
      expect(exit).not.toHaveBeenCalled()
      vi.advanceTimersByTime(4999)
      expect(exit.mock.calls).toEqual([[143]])
    },
    () => {},
  )
})
