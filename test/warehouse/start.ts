import { spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'
import type { Workspace } from '../e2e/support/workspace.ts'
import { CLI, type Ended, runCli } from '../support/run-cli.ts'

/** A running process of the built command. */
export type Started = {
  readonly ended: Promise<Ended>
  /** Resolves once its output, stdout and stderr together, matches. */
  says(pattern: RegExp): Promise<void>
  kill(signal: NodeJS.Signals): void
}

/** Starts the command with these arguments, in the folder; it ends with the test at the latest. */
export function start(here: Workspace, ...words: string[]): Started {
  const child = spawn(process.execPath, [CLI, ...words], {
    cwd: here.folder,
    env: { PATH: process.env.PATH ?? '', ...here.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [stdout, stderr] = ['', '']
  const listeners = new Set<() => void>()
  const heard = (): void => {
    for (const listener of listeners) listener()
  }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    heard()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    heard()
  })
  const ended = new Promise<Ended>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr })),
  )
  return {
    ended,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const listen = (): void => void (pattern.test(stdout + stderr) && resolve())
        listeners.add(listen)
        listen()
        ended.then(() => reject(new Error(`it ended without saying ${pattern}: ${stderr}`)))
      }),
    kill: (signal) => void child.kill(signal),
  }
}

/**
 * Runs the built command again and again, and kills it later each time, until it ends before the kill.
 * @param afterKill called after each kill
 * @returns the number of kills, at most `most`
 */
export async function killLaterAndLater(
  here: Workspace,
  words: readonly string[],
  { firstMs, stepMs }: { readonly firstMs: number; readonly stepMs: number },
  most: number,
  afterKill: () => Promise<void>,
): Promise<number> {
  let kills = 0
  for (let delayMs = firstMs; kills < most; delayMs += stepMs) {
    const { signal } = await runCli({
      args: words,
      cwd: here.folder,
      env: here.env,
      onStart: (kill) => void setTimeout(() => kill('SIGKILL'), delayMs),
    })
    if (signal !== 'SIGKILL') break
    kills++
    await afterKill()
  }
  return kills
}
