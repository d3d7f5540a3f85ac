import type { SandboxOptions } from '../support/sandbox.ts'
import { type Environment, newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'

export const THREE_MONTHS = { from: '2024-01-01', until: '2024-04-01', every: 'month' }

/** Small pages, one after the other. */
export const ONE_SLOT = { page_size: 2, concurrency: 1 }

/** A workspace with a pipeline that requests three months of a domain, unless its parts say otherwise. */
export function trial(
  parts: PipelineParts = {},
  options: SandboxOptions = {},
  env: Environment = {},
): Promise<Workspace> {
  return newWorkspace(threeMonths(parts), { records: 40, ...options }, env)
}

/** The parts of such a pipeline. */
export function threeMonths(parts: PipelineParts = {}): PipelineParts {
  return { ...parts, extract: { domains: ['scatterholt.com'], windows: THREE_MONTHS, ...parts.extract } }
}
