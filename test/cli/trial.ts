import { carryOutHere } from '../support/in-this-process.ts'
import { type SandboxOptions, startSandbox } from '../support/sandbox.ts'
import {
  type Environment,
  type PipelineParts,
  SMALL,
  type Workspace,
  workspaceFor,
} from '../support/workspace.ts'

export const THREE_MONTHS = { from: '2024-01-01', until: '2024-04-01', every: 'month' }

/** Small pages, one after the other. */
export const ONE_SLOT = { page_size: 2, concurrency: 1 }

/**
 * A workspace with a pipeline that requests three months of a domain, unless its parts say otherwise. Commands are always
 * carried out in this process: what they print names the program.
 */
export async function trial(
  parts: PipelineParts = {},
  options: SandboxOptions = {},
  env: Environment = {},
): Promise<Workspace> {
  const sandbox = await startSandbox({ ...SMALL, records: 40, ...options })
  return workspaceFor(sandbox, threeMonths(parts), env, carryOutHere)
}

/** The parts of such a pipeline. */
export function threeMonths(parts: PipelineParts = {}): PipelineParts {
  return { ...parts, extract: { domains: ['scatterholt.com'], windows: THREE_MONTHS, ...parts.extract } }
}
