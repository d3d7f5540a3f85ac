import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { type Clock, ExportError, isExportError, type OwnedStore, type Store } from '../../core/index.ts'
import {
  describeOwner,
  heartbeatOf,
  INSTANCE,
  isHeld,
  type LockFile,
  lockFileText,
  ownerStatus,
  parseLockFile,
  startHeartbeat,
} from './lock-file.ts'

export type Lock = {
  /** The store for changes of the data set. If another run takes over, every change fails with `locked`. */
  readonly store: OwnedStore
  /** Aborts when another run has taken over; the reason is an ExportError `locked`. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

/** The right of a job to hold a data set, as its queue assigned it. Its id is the fencing token of the job. */
export type Hold = {
  /** A name that only the current holder of the job and its predecessors have. */
  readonly id: string
  /** Ids of earlier holds that this one replaces, by the queue. */
  readonly succeeds: readonly string[]
  /** Called before a lock is taken over because of `succeeds`. Rejects if the queue gave the job to another owner. */
  readonly confirm: () => Promise<void>
}

export type LockOptions = {
  readonly clock: Clock
  readonly stop: AbortSignal
  /** The run starts over, so lock files that cannot be parsed are taken over. */
  readonly fresh: boolean
  /** Left out: no queue is involved. */
  readonly hold?: Hold | undefined
  /** Reports why the run waits, and for how many milliseconds at most. */
  readonly warn: (message: string, waitMs: number) => void
}

const STATE = '_state'
// Six heartbeats may be late. A restart of a machine takes longer than the lease.
const LEASE_MS = 20_000
const POLL_MS = 500
// Withdrawing takes a few requests; with a slow store each may take a second.
const WITHDRAWAL_MS = 20_000

/**
 * Locks the data set for one process: it writes a lock file, then reads those of others. Of two that start at once, at
 * least one sees the other. It withdraws from a holder, and from a lesser id; it takes over from owners that are dead,
 * or succeeded by its hold. Owners elsewhere are alive while their files change: see decision 3.
 * @throws ExportError `locked` with process, host and start
 */
export async function takeLock(data: Store, options: LockOptions): Promise<Lock> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryLock(data, options)
    } catch (error) {
      // The holder ends ownerships without a lock file. The next attempt reads the holder's lock file.
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
  const store = await data.own(id)
  OWNERSHIPS.add(id)
  const withdraw = async (): Promise<void> => {
    OWNERSHIPS.delete(id)
    try {
      await store.remove(path)
    } catch (error) {
      // Another owner has removed it.
      if (!isExportError(error, 'locked')) throw error
    } finally {
      await store.release()
    }
  }
  try {
    const self = describeOwner(now, options.hold?.id ?? null)
    await store.create(path, [lockFileText(self)])
    const heartbeat = startHeartbeat(store, path, self, clock)
    try {
      const former = await formerOwners(store, id, options)
      // This process may have been stopped since the queue decided.
      if (former.succeeded) await options.hold?.confirm()
      await heartbeat.hold()
      await takeOver(store, former, id)
      const release = async (): Promise<void> => {
        await heartbeat.stop()
        await withdraw()
      }
      return { store, lost: heartbeat.lost, release }
    } catch (error) {
      await heartbeat.stop()
      throw error
    }
  } catch (error) {
    await withdraw()
    throw error
  }
}

/** Those of this thread. */
const OWNERSHIPS = new Set<string>()

/** A lock file of an ownership that has ended here is left: it could not be removed, or its write came late. */
function statusOf(id: string, file: LockFile): ReturnType<typeof ownerStatus> {
  return file.instance === INSTANCE && !OWNERSHIPS.has(id) ? 'dead' : ownerStatus(file)
}

/** Whether this process succeeds the owner of a lock file by decision of the queue. The lease of that owner is void. */
function isSucceeded({ hold }: LockFile, { hold: own }: LockOptions): boolean {
  return hold !== null && own !== undefined && (hold === own.id || own.succeeds.includes(hold))
}

type FormerOwners = {
  readonly ended: ReadonlySet<string>
  /** Whether one of them ends only because this hold succeeds it. */
  readonly succeeded: boolean
}

/** Waits until no other owner is alive. @throws ExportError `locked` if one holds the data set, or has a lesser id */
async function formerOwners(store: Store, self: string, options: LockOptions): Promise<FormerOwners> {
  const { clock, stop } = options
  const ended = new Set<string>()
  let succeeded = false
  let left = (await store.list(STATE)).flatMap((name): Rival[] => {
    const id = idOf(name, 'lock')
    return id === null || id === self ? [] : [{ id, found: null, isAlive: false }]
  })
  let polledMs: number | null = null
  for (let waitedMs = 0; ; ) {
    const waiting: Rival[] = []
    for (const rival of left) {
      const state = await stateOf(rival, waitedMs, { store, self, options })
      if (state === 'waiting') waiting.push(rival)
      else if (state !== 'gone') ended.add(rival.id)
      succeeded ||= state === 'succeeded'
    }
    if (waiting.length === 0) return { ended, succeeded }
    if (polledMs === null) warnOfWait(waiting, options)
    polledMs ??= clock.monotonicMs()
    left = waiting
    await clock.sleep(POLL_MS, stop)
    const nowMs = clock.monotonicMs()
    // If this machine was suspended, the other one may have been as well, so that time does not count.
    waitedMs += Math.min(nowMs - polledMs, 2 * POLL_MS)
    polledMs = nowMs
  }
}

type Rival = {
  readonly id: string
  /** Its lock file when it was first read. */
  found: { readonly file: LockFile; readonly bytes: Uint8Array } | null
  /** Whether it is known to be alive; else no heartbeat was seen yet. */
  isAlive: boolean
}

async function stateOf(
  rival: Rival,
  waitedMs: number,
  { store, self, options }: { readonly store: Store; readonly self: string; readonly options: LockOptions },
): Promise<'gone' | 'ended' | 'succeeded' | 'waiting'> {
  const path = lockPath(rival.id)
  // The file is read, not statted: over a network only opening a file shows its latest content.
  const bytes = await store.read(path)
  if (bytes === null) return 'gone'
  const file = rival.found?.file ?? readLockFile(bytes, path, options.fresh)
  const status = file === null ? 'dead' : statusOf(rival.id, file)
  if (file === null || status === 'dead') return 'ended'
  if (isSucceeded(file, options)) return 'succeeded'
  rival.found ??= { file, bytes }
  rival.isAlive ||= status === 'alive' || Buffer.compare(bytes, rival.found.bytes) !== 0
  if (!rival.isAlive) return waitedMs >= LEASE_MS ? 'ended' : 'waiting'
  if (isHeld(bytes) || rival.id < self || waitedMs >= WITHDRAWAL_MS) throw new LockHeld(file, path)
  return 'waiting'
}

function warnOfWait(rivals: readonly Rival[], { warn }: LockOptions): void {
  const unknown = rivals.find(({ isAlive }) => !isAlive)
  if (unknown === undefined) return
  warn(
    `${holder(unknown.found!.file)}; this machine cannot know whether it is alive, so the lock is taken over after ${LEASE_MS / 1000} s without a heartbeat`,
    LEASE_MS,
  )
}

/** Ends the rights of former owners. Lock files are removed last, so that after a crash the next owner repeats all steps. */
async function takeOver(store: OwnedStore, { ended }: FormerOwners, self: string): Promise<void> {
  const names = new Set(await store.list(STATE))
  // An owner that has not written a lock file yet, or has just removed it; or a user deleted it.
  const unknown = [...names].flatMap((name) => {
    const id = idOf(name, 'open')
    return id === null || id === self || names.has(`lock.${id}`) ? [] : [id]
  })
  const former = [...ended, ...unknown]
  await store.takeOver(former)
  // One of the unknown may have written its lock file since the names were read.
  for (const id of former) await store.remove(lockPath(id))
}

/** Who holds a data set, by its lock file; null: nobody, as far as this machine can know. */
export async function readHolder(store: Store, nowMs: number): Promise<Holder | null> {
  for (const name of await store.list(STATE)) {
    const id = idOf(name, 'lock')
    const bytes = id === null ? null : await store.read(lockPath(id))
    if (id === null || bytes === null || !isHeld(bytes)) continue
    const file = parseLockFile(bytes, lockPath(id))
    const { pid, host, since } = file
    const status = statusOf(id, file)
    const heartbeatAt = heartbeatOf(bytes)
    const isLate = status === 'unknown' && nowMs - Date.parse(heartbeatAt) > LEASE_MS
    if (status !== 'dead') return { pid, host, since, heartbeatAt, isLate }
  }
  return null
}

export type Holder = {
  readonly pid: number
  readonly host: string
  readonly since: string
  readonly heartbeatAt: string
  /** Whether it is on another machine, and its lease has expired by this one's clock: it has probably ended. */
  readonly isLate: boolean
}

function lockPath(id: string): string {
  return `${STATE}/lock.${id}`
}

/** `lock.0123456789ab` → `0123456789ab` */
function idOf(name: string, kind: string): string | null {
  const id = name.startsWith(`${kind}.`) ? name.slice(kind.length + 1) : ''
  return /^[0-9a-f]{12}$/.test(id) ? id : null
}

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
    super({
      kind: 'locked',
      what: holder(file),
      where: path,
      next: elsewhere
        ? 'Wait for it to end: it has just sent a heartbeat. If its machine or container dies, the next run takes over automatically.'
        : 'Wait for it to end. The lock of a dead process is taken over automatically.',
    })
  }
}
