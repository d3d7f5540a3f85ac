import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import * as z from 'zod'
import { ExportError } from '../core/index.ts'

const claimSchema = z.object({
  pid: z.number().int(),
  host: z.string(),
  /** Tells one process from a later one with the same id; null where the system does not say. */
  process_start: z.string().nullable(),
  boot: z.string().nullable(),
  /** Containers on one host number their processes anew, so ids compare only within one namespace. */
  pid_namespace: z.string().nullable(),
  since: z.string(),
  /** What the data set is held for, see {@link Hold}; left out or null: for the process alone. */
  hold: z.string().nullable().optional(),
})

/** The first line of a claim file; what follows it are signs of life. */
export type Claim = z.infer<typeof claimSchema>

export function describeSelf(now: Date, hold: string | null = null): Claim {
  return {
    pid: process.pid,
    host: hostname(),
    process_start: processStart(process.pid),
    boot: bootId(),
    pid_namespace: pidNamespace(),
    since: now.toISOString(),
    hold,
  }
}

export function claimText(claim: Claim): string {
  return `${JSON.stringify(claim)}\n`
}

/** A sign of life; and that of an owner that has found nobody else, and holds the data set from then on. */
export const BEAT = Buffer.from('.')
export const HELD = Buffer.from('+')

/** Whether the owner of a claim has gone on. */
export function isHeld(claim: Uint8Array): boolean {
  return claim.lastIndexOf(HELD[0]!) > claim.indexOf(NEWLINE)
}

const NEWLINE = 10

/** @throws ExportError `damaged` when it makes no sense */
export function parseClaim(bytes: Uint8Array, path: string): Claim {
  const [line = ''] = Buffer.from(bytes).toString().split('\n', 1)
  try {
    return claimSchema.parse(JSON.parse(line))
  } catch (error) {
    throw new ExportError(
      'damaged',
      'The lock file can not be read',
      path,
      'When you are sure that no other run is at work on this path, delete the file and run again.',
      { cause: error },
    )
  }
}

/**
 * What is known here of the process that made a claim. Its id says something only within one boot of one machine and
 * one numbering of processes: two machines may share a name, and on another boot the same id is another process.
 */
export function fateOf(claim: Claim): 'alive' | 'dead' | 'unknown' {
  if (claim.host !== hostname()) return 'unknown'
  if (claim.boot === null || claim.boot !== bootId()) return 'unknown'
  if (claim.pid_namespace === null || claim.pid_namespace !== pidNamespace()) return 'unknown'
  try {
    process.kill(claim.pid, 0)
  } catch (error) {
    // EPERM: it is there, but belongs to somebody else.
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return 'dead'
  }
  const start = processStart(claim.pid)
  return start === null || claim.process_start === null || start === claim.process_start ? 'alive' : 'dead'
}

/** Start time in clock ticks since boot (Linux); a process that has ended but not been reaped counts as ended. */
function processStart(pid: number): string | null {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === null) return null
  // The second field is the name in parentheses and may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : (fields[19] ?? null)
}

function bootId(): string | null {
  return readText('/proc/sys/kernel/random/boot_id')?.trim() ?? null
}

function pidNamespace(): string | null {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return null
  }
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
