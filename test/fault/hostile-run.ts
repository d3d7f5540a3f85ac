import { readFileSync } from 'node:fs'
import { carryOut } from '../support/in-this-process.ts'
import type { RunArgs } from '../support/run-cli.ts'
import { startSandbox } from '../support/sandbox.ts'
import { type Environment, type PipelineParts, type Workspace, workspaceFor } from '../support/workspace.ts'
import { type Exchange, type HostileService, startService } from './hostile-service.ts'
import { runCli } from './support.ts'

export type AttackOptions = {
  readonly env?: Environment
  /** Whether the memory of the commands is watched. Each command is then a process. */
  readonly watched?: boolean
  readonly testsTokens?: boolean
}

export type Attack = Workspace & {
  readonly service: HostileService
  /** Largest resident set of a command that was seen; 0 where memory is not watched. */
  peakMb(): number
}

/** A workspace whose pipeline exports from a service that responds as a test says. */
export async function startAttack(
  respond: (exchange: Exchange) => void,
  parts: PipelineParts = {},
  { env = {}, watched = false, testsTokens = false }: AttackOptions = {},
): Promise<Attack> {
  const service = await startService(respond, testsTokens)
  let peakMb = 0
  const watch = async (command: RunArgs) => {
    let timer: NodeJS.Timeout | undefined
    const ended = await runCli({
      ...command,
      onStart(_kill, pid) {
        timer = setInterval(() => {
          peakMb = Math.max(peakMb, peakOf(pid))
        }, 25)
      },
    })
    clearInterval(timer)
    return ended
  }
  const here = await workspaceFor(
    await startSandbox(),
    {
      ...parts,
      service: { retries: 0, ...parts.service },
      extract: { domains: ['acme.example'], ...parts.extract },
      load: { format: 'csv', ...parts.load },
    },
    { SPILLWAY_BASE_URL: service.baseUrl, ...env },
    watched ? watch : carryOut,
  )
  return { ...here, service, peakMb: () => peakMb }
}

/** The peak memory of a process. Where there is no /proc, memory is not watched. */
function peakOf(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

export async function attack(...given: Parameters<typeof startAttack>) {
  const { call, service, peakMb } = await startAttack(...given)
  const ended = await call('run', '--json')
  return { ...ended, peakMb: peakMb(), requests: service.requests.length }
}
