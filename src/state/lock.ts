import { randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { z } from 'zod'
import { type Clock, ExportError, type Store } from '../core/index.ts'

export type Lock = { release(): Promise<void> }

export type LockOptions = {
  readonly clock: Clock
  /** Ends the wait for a rival that came in the same instant. */
  readonly stop: AbortSignal
  /** Everything is started over, so a claim that can't be read stands in nobody's way. */
  readonly fresh: boolean
}

/**
 * Takes the data set for one process. Every process lays down a claim file of its own and then looks at
 * the others': whoever sees another living claim withdraws. Of two that start together at least one sees
 * the other, so two can never both go on. A claim is alive while its process is: a stopped process keeps
 * it, a dead one loses it at once, and neither a reboot nor a reused process id can confuse them, because
 * the claim holds the boot's id and the process's start time. The claim of another host can't be judged
 * from here and counts as alive.
 * @throws ExportError `locked` naming process, host and start
 */
export async function takeLock(store: Store, { clock, stop, fresh }: LockOptions): Promise<Lock> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await claim(store, new Date(clock.now()), fresh)
    } catch (error) {
      // Two that start in the same instant both withdraw; let chance decide which of them comes first.
      if (!(error instanceof Held) || error.ageMs > 2000 || attempt === 4) throw error
      await clock.sleep(50 + Math.random() * 250, stop)
    }
  }
}

async function claim(store: Store, now: Date, fresh: boolean): Promise<Lock> {
  const self = describeSelf(now)
  const name = `lock.${randomBytes(6).toString('hex')}`
  const path = `_state/${name}`
  await store.writeWhole(path, [`${JSON.stringify(self)}\n`])
  const release = () => store.remove(path)
  try {
    for (const other of await store.list('_state')) {
      if (other === name || !/^lock\.[0-9a-f]{12}$/.test(other)) continue
      const theirs = await readClaim(store, `_state/${other}`, fresh)
      if (theirs !== null && isAlive(theirs)) throw new Held(theirs, `_state/${other}`, now)
      await store.remove(`_state/${other}`)
    }
  } catch (error) {
    await release()
    throw error
  }
  return { release }
}

const claimSchema = z.object({
  pid: z.number().int(),
  host: z.string(),
  /** Tells one process from a later one with the same id; null where the system does not say. */
  process_start: z.string().nullable(),
  boot: z.string().nullable(),
  /** Containers on one host number their processes anew, so ids compare only within one namespace. */
  pid_namespace: z.string().nullable(),
  since: z.string(),
})
type Claim = z.infer<typeof claimSchema>

function describeSelf(now: Date): Claim {
  return {
    pid: process.pid,
    host: hostname(),
    process_start: processStart(process.pid),
    boot: bootId(),
    pid_namespace: pidNamespace(),
    since: now.toISOString(),
  }
}

/** @returns null when it is gone, or makes no sense and everything is to be started over */
async function readClaim(store: Store, path: string, fresh: boolean): Promise<Claim | null> {
  const bytes = await store.read(path)
  if (bytes === null) return null
  try {
    return claimSchema.parse(JSON.parse(Buffer.from(bytes).toString()))
  } catch (error) {
    if (fresh) return null
    throw new ExportError(
      'damaged',
      'The lock file can not be read',
      path,
      'When you are sure that no other run is at work on this path, delete the file and run again.',
      { cause: error },
    )
  }
}

function isAlive(claim: Claim): boolean {
  if (claim.host !== hostname()) return true
  if (claim.boot !== bootId()) return false
  if (claim.pid_namespace !== pidNamespace()) return true
  try {
    process.kill(claim.pid, 0)
  } catch (error) {
    // EPERM: it is there, but belongs to somebody else.
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false
  }
  const start = processStart(claim.pid)
  return start === null || claim.process_start === null || start === claim.process_start
}

class Held extends ExportError {
  readonly ageMs: number

  constructor(claim: Claim, path: string, now: Date) {
    const elsewhere = claim.host !== hostname() || claim.pid_namespace !== pidNamespace()
    super(
      'locked',
      `Another run holds this pipeline: process ${claim.pid} on host ${claim.host} since ${claim.since}`,
      path,
      elsewhere
        ? 'Wait for it to end; if that host or container is gone for good, delete the file and run again.'
        : 'Wait for it to end; the lock of a process that died is taken over by itself.',
    )
    this.ageMs = now.getTime() - Date.parse(claim.since)
  }
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
