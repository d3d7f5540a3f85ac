import { randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import * as z from 'zod'
import { type Clock, ExportError, hasCode, isExportError, type OwnedStore, serial } from '../../core/index.ts'

const lockFileSchema = z.object({
  pid: z.number().int(),
  host: z.string(),
  /** Start of the process, which identifies it if its id is used again; null: the system does not report it. */
  process_start: z.string().nullable(),
  boot: z.string().nullable(),
  /** Each container has its own process ids, so ids are comparable only within one namespace. */
  pid_namespace: z.string().nullable(),
  /** A random number of the thread that wrote it, which knows the ownerships that it holds. */
  instance: z.string(),
  since: z.string(),
  /** The id of the {@link Hold}; null: no queue is involved. */
  hold: z.string().nullable(),
})

export type LockFile = Readonly<z.infer<typeof lockFileSchema>>

export const INSTANCE = randomBytes(6).toString('hex')

export function describeOwner(now: Date, hold: string | null = null): LockFile {
  return {
    pid: process.pid,
    host: hostname(),
    process_start: processStart(process.pid),
    boot: bootId(),
    pid_namespace: pidNamespace(),
    instance: INSTANCE,
    since: now.toISOString(),
    hold,
  }
}

/** @param heartbeats show other machines that the owner is alive @param isHeld no rival was found */
export function lockFileText(file: LockFile, heartbeats = 0, isHeld = false, at = file.since): string {
  return `${JSON.stringify(file)}\n${heartbeats} ${at}${isHeld ? HELD : ''}\n`
}

/** When the owner last showed that it is alive, by its own clock. */
export function heartbeatOf(file: Uint8Array): string {
  return /\n\d+ (\S+)/.exec(Buffer.from(file).toString())?.[1] ?? ''
}

const HELD = ' held'

export function isHeld(file: Uint8Array): boolean {
  return Buffer.from(file).toString().trimEnd().endsWith(HELD)
}

/** @throws ExportError `damaged` if it cannot be parsed */
export function parseLockFile(bytes: Uint8Array, path: string): LockFile {
  const [line = ''] = Buffer.from(bytes).toString().split('\n', 1)
  try {
    return lockFileSchema.parse(JSON.parse(line))
  } catch (error) {
    throw new ExportError({
      kind: 'damaged',
      what: 'The lock file cannot be read',
      where: path,
      next: 'If you are sure that no other run uses this path, delete the file and run again.',
      cause: error,
    })
  }
}

/** A process id says nothing across machines, boots and PID namespaces. Two machines may have the same name. */
export function ownerStatus(file: LockFile): 'alive' | 'dead' | 'unknown' {
  if (file.host !== hostname()) return 'unknown'
  if (file.boot === null || file.boot !== bootId()) return 'unknown'
  if (file.pid_namespace === null || file.pid_namespace !== pidNamespace()) return 'unknown'
  try {
    process.kill(file.pid, 0)
  } catch (error) {
    // EPERM: the process exists, but belongs to another user.
    if (hasCode(error, 'ESRCH')) return 'dead'
  }
  const start = processStart(file.pid)
  return start === null || file.process_start === null || start === file.process_start ? 'alive' : 'dead'
}

/** Start time in clock ticks since boot (Linux). A zombie has ended. */
function processStart(pid: number): string | null {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === null) return null
  // The second field is the name in parentheses. The name may contain spaces and parentheses.
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

// A fraction of the lease, so that some heartbeats may be late.
const HEARTBEAT_MS = 3_000

type Heartbeat = {
  readonly lost: AbortSignal
  /** Marks the data set as held. @throws ExportError `locked` when another run has taken over */
  hold(): Promise<void>
  stop(): Promise<void>
}

export function startHeartbeat(store: OwnedStore, path: string, file: LockFile, clock: Clock): Heartbeat {
  const end = new AbortController()
  const lost = new AbortController()
  const oneAtATime = serial()
  let heartbeats = 0
  let isHeld = false
  const write = (): Promise<void> =>
    oneAtATime(() => {
      const at = new Date(clock.now()).toISOString()
      return store.replace(path, [lockFileText(file, ++heartbeats, isHeld, at)])
    })
  const sendHeartbeats = async (): Promise<void> => {
    while (!end.signal.aborted) {
      try {
        await clock.sleep(HEARTBEAT_MS, end.signal)
      } catch {
        return
      }
      try {
        await write()
      } catch (error) {
        if (isExportError(error, 'locked')) return lost.abort(error)
        // Other errors of the disk fail the run itself.
      }
    }
  }
  const stopped = sendHeartbeats()
  return {
    lost: lost.signal,
    hold() {
      isHeld = true
      return write()
    },
    async stop() {
      end.abort()
      await stopped
    },
  }
}
