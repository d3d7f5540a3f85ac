import { vi } from 'vitest'

/** Waits until a check passes: a minute, since a busy machine takes longer than the second of `vi.waitFor`. */
export function eventually(check: () => void): Promise<void> {
  return vi.waitFor(check, { timeout: 60_000, interval: 5 })
}
