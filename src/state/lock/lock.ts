import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { type Clock, ExportError, type FencedStore, isExportError, type Store } from '../../core/index.ts'
import {
  describeOwner,
  isHeld,
  type LockFile,
  lockFileText,
  ownerStatus,
  parseLockFile,
  startHeartbeat,
} from './lock-file.ts'

export type Lock = {
  /** The data set as the holder may change it. Once another run takes over, every change is refused. */
  readonly store: Store
  /** Aborts when another run has taken over; the reason is an ExportError `locked`. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

/** Why a process may hold a data set, where a queue of jobs decides that: the fencing token of the job. */
export type Hold = {
  /** A name that only the rightful holder and its predecessors have. */
  readonly id: string
  /** Ids of earlier holds that this one succeeds, as the queue says. */
  readonly succeeds: readonly string[]
  /** Checks with the queue before another owner's lock is taken on its word. Fails when this hold is not the rightful one. */
  readonly confirm: () => Promise<void>
}

export type LockOptions = {
  readonly clock: Clock
  /** Ends the wait for a rival. */
  readonly stop: AbortSignal
  /** Everything is started over, so lock files that can't be parsed are taken over. */
  readonly fresh: boolean
  /** Left out: no queue is involved. */
  readonly hold?: Hold | undefined
  /** The files that runs append to under their final names. */
  readonly growing: (store: Store) => Promise<readonly string[]>
  /** Says why the run waits, and for how many milliseconds at most. */
  readonly warn: (message: string, waitMs: number) => void
}

const STATE = '_state'
/** The staging directory; with `.<owner>` behind it while there is an owner. */
const OPEN = 'open'

// Six heartbeats may be late. A machine takes longer than that to restart.
const LEASE_MS = 20_000
const POLL_MS = 500
// Withdrawing takes a few requests, of a second each where a store is slow.
const WITHDRAWAL_MS = 20_000

/**
 * Locks the data set for one process. Every process makes a staging directory, writes a lock file and then reads the lock
 * files of others. It holds the data set once no owner of those is alive. Of two processes that start at the same time at
 * least one sees the other, so two never hold the data set at once. The holder marks its lock file; processes that see the
 * mark withdraw. Among processes that do not hold it yet, the one with the least name waits and the others withdraw, so one
 * always gets the lock.
 *
 * An owner on this boot of this machine is alive while its process exists, also when that is stopped. If the process is
 * dead, its lock is taken over at once. Other owners have a lease: their lock file is watched by this machine's clock. If
 * it does not grow for 20 seconds, the lease expires and the lock is taken over. Its owner may wake up later, but can't
 * change anything then, see {@link FencedStore}.
 *
 * The lock of a hold that this one succeeds is taken over at once, whatever its process does.
 * @throws ExportError `locked` naming process, host and start
 */
export async function takeLock(data: Store, options: LockOptions): Promise<Lock> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryLock(data, options)
    } catch (error) {
      // The holder removes staging directories without a lock file. The next attempt reads whose lock it is.
      if (!isExportError(error, 'locked') || error instanceof LockHeld || attempt === 4) throw error
      await options.clock.sleep(50 + Math.random() * 250, options.stop)
    }
  }
}

async function tryLock(data: Store, options: LockOptions): Promise<Lock> {
  const { clock } = options
  const now = new Date(clock.now())
  const id = randomBytes(6).toString('hex')
  const path = lockPath(id)
  const store = await data.fenced(`${STATE}/${OPEN}`, id)
  const withdraw = async (): Promise<void> => {
    try {
      await store.release()
    } finally {
      await data.remove(path)
    }
  }
  try {
    const self = describeOwner(now, options.hold?.id ?? null)
    await store.writeWhole(path, [lockFileText(self)])
    const heartbeat = await startHeartbeat(store, path, self, clock)
    try {
      const { dead, expired, succeeded } = await rivals(store, id, options)
      // This process may have been stopped since the queue decided.
      if (succeeded) await options.hold?.confirm()
      await heartbeat.hold()
      await takeOver(store, { dead, expired }, id, options)
    } catch (error) {
      await heartbeat.stop()
      throw error
    }
    const release = async (): Promise<void> => {
      await heartbeat.stop()
      await withdraw()
    }
    return { store, lost: heartbeat.lost, release }
  } catch (error) {
    await withdraw()
    throw error
  }
}

/** Whether the queue has given the data set to this process instead: then there is no lease to wait for. */
function isSucceeded({ hold }: LockFile, { hold: own }: LockOptions): boolean {
  return hold != null && own !== undefined && (hold === own.id || own.succeeds.includes(hold))
}

type Rivals = {
  /** Their processes have ended. */
  readonly dead: ReadonlySet<string>
  /** Their leases have expired; their processes may still wake up. */
  readonly expired: ReadonlySet<string>
}

type Found = Rivals & {
  /** Whether one of them counts as expired only because this hold succeeds it. */
  readonly succeeded: boolean
}

/**
 * Waits until no owner of another lock file is alive.
 * @throws ExportError `locked` when one of them holds the data set, or comes first
 */
async function rivals(store: Store, self: string, options: LockOptions): Promise<Found> {
  const { clock, stop } = options
  let succeeded = false
  const dead = new Set<string>()
  const expired = new Set<string>()
  const waitedFor = new Map<string, Rival>()
  for (const name of await store.list(STATE)) {
    const id = idOf(name, 'lock')
    if (id === null || id === self) continue
    const bytes = await store.read(lockPath(id))
    if (bytes === null) continue
    const file = readLockFile(bytes, lockPath(id), options.fresh)
    const status = file === null ? 'expired' : ownerStatus(file)
    const isOurs = file !== null && status !== 'dead' && isSucceeded(file, options)
    succeeded ||= isOurs
    if (file === null || isOurs || status === 'expired') expired.add(id)
    else if (status === 'dead') dead.add(id)
    else {
      const rival = { id, file, size: bytes.byteLength, isAlive: status === 'alive', waitedMs: 0 }
      if (rival.isAlive) withdrawFrom(rival, bytes, self)
      waitedFor.set(id, rival)
    }
  }
  warnOfWait(waitedFor.values(), options)
  for (let polledMs = clock.monotonicMs(); waitedFor.size > 0; ) {
    await clock.sleep(POLL_MS, stop)
    const nowMs = clock.monotonicMs()
    // While this machine slept, the other one may have slept as well: that time does not count.
    const waitedMs = Math.min(nowMs - polledMs, 2 * POLL_MS)
    polledMs = nowMs
    for (const [id, rival] of waitedFor) {
      rival.waitedMs += waitedMs
      // The file is read, not statted: over a network only opening a file shows its latest content.
      const bytes = await store.read(lockPath(id))
      if (bytes === null) waitedFor.delete(id)
      else if (bytes.byteLength !== rival.size || rival.isAlive) {
        if (rival.isAlive && ownerStatus(rival.file) === 'dead') {
          waitedFor.delete(id)
          dead.add(id)
          continue
        }
        rival.isAlive = true
        withdrawFrom(rival, bytes, self)
        if (rival.waitedMs >= WITHDRAWAL_MS) throw new LockHeld(rival.file, lockPath(id))
      } else if (rival.waitedMs >= LEASE_MS) {
        waitedFor.delete(id)
        expired.add(id)
      }
    }
  }
  return { dead, expired, succeeded }
}

type Rival = {
  readonly id: string
  readonly file: LockFile
  /** Of its lock file, when first seen. */
  readonly size: number
  /** Whether it is known to be alive; else no heartbeat was seen yet. */
  isAlive: boolean
  waitedMs: number
}

/** @throws ExportError `locked` when a living rival holds the data set, or has the lesser name */
function withdrawFrom({ id, file }: Rival, bytes: Uint8Array, self: string): void {
  if (isHeld(bytes) || id < self) throw new LockHeld(file, lockPath(id))
}

function warnOfWait(rivals: Iterable<Rival>, { warn }: LockOptions): void {
  for (const { file, isAlive } of rivals) {
    if (isAlive) continue
    warn(
      `${holder(file)}; this machine can not know whether it is alive, so the lock is taken over after ${LEASE_MS / 1000} s without a heartbeat`,
      LEASE_MS,
    )
    return
  }
}

/**
 * Fences former owners, and takes over their files. Lock files are removed last: after a crash the next owner repeats all
 * of it.
 */
async function takeOver(
  store: FencedStore,
  { dead, expired }: Rivals,
  self: string,
  { growing }: LockOptions,
): Promise<void> {
  const names = new Set(await store.list(STATE))
  let mayWrite = expired.size > 0
  if (names.has(OPEN)) await store.takeOver(null, false)
  for (const name of names) {
    const id = idOf(name, OPEN)
    if (id === null || id === self) continue
    if (dead.has(id)) await store.takeOver(id, false)
    else if (expired.has(id)) await store.takeOver(id, true)
    else if (!names.has(`lock.${id}`)) {
      // A process is about to write its lock file, and has to begin again; or a user has deleted one.
      mayWrite = (await store.takeOver(id, true)) || mayWrite
    }
  }
  if (mayWrite) for (const path of await growing(store)) await store.replaceByCopy(path)
  await store.settle()
  for (const id of [...dead, ...expired]) await store.remove(lockPath(id))
}

function lockPath(id: string): string {
  return `${STATE}/lock.${id}`
}

/** `lock.0123456789ab` → `0123456789ab` */
function idOf(name: string, kind: string): string | null {
  const id = name.startsWith(`${kind}.`) ? name.slice(kind.length + 1) : ''
  return /^[0-9a-f]{12}$/.test(id) ? id : null
}

/** @returns null when it can't be parsed and everything is to be started over */
function readLockFile(bytes: Uint8Array, path: string, fresh: boolean): LockFile | null {
  try {
    return parseLockFile(bytes, path)
  } catch (error) {
    if (fresh) return null
    throw error
  }
}

function holder({ pid, host, since }: LockFile): string {
  return `Another run holds this pipeline: process ${pid} on host ${host} since ${since}`
}

class LockHeld extends ExportError {
  constructor(file: LockFile, path: string) {
    const elsewhere = file.host !== hostname() || ownerStatus(file) === 'unknown'
    super(
      'locked',
      holder(file),
      path,
      elsewhere
        ? 'Wait for it to end: its heartbeat has just come. Should its machine or container die, the next run takes over by itself.'
        : 'Wait for it to end; the lock of a process that died is taken over by itself.',
    )
  }
}
