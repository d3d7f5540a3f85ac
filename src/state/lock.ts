import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { type Clock, ExportError, isExportError, type OwnStore, type Store } from '../core/index.ts'
import { type Claim, claimText, describeSelf, fateOf, parseClaim } from './claim.ts'
import { refuseSharedRun } from './shared-run.ts'
import { showSignsOfLife } from './signs-of-life.ts'

export type Lock = {
  /** The data set as only the holder may change it: from the moment another takes over, every change is refused. */
  readonly store: Store
  /** Aborts when another run has taken over; the reason is an ExportError `locked`. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

export type LockOptions = {
  readonly clock: Clock
  /** Ends the wait for a rival. */
  readonly stop: AbortSignal
  /** Everything is started over, so a claim that can't be read stands in nobody's way. */
  readonly fresh: boolean
  /** The run of many workers that the lock is taken for; left out: for none, and none may be at it. */
  readonly sharedRun?: string
  /** The files that runs add to under the names that they keep. */
  readonly growing: (store: Store) => Promise<readonly string[]>
  /** Tells why nothing happens for a while, so many milliseconds at most. */
  readonly warn: (message: string, waitMs: number) => void
}

const FOLDER = '_state'
/** What belongs to the run at work; with the owner's name behind it while there is one. */
const OPEN = 'open'

// Six signs of life may be late. A machine that was started anew takes longer than that by itself.
const SILENCE_MS = 20_000
const LOOK_MS = 500

/**
 * Takes the data set for one process. Every process makes a folder of its own, lays down a claim file and then looks
 * at the others' claims: whoever sees another living claim withdraws. Of two that start together at least one sees
 * the other, so two can never both go on.
 *
 * A claim of this boot of this machine is alive while its process is, also when that is stopped; when it is dead it is
 * taken over at once. Any other claim can't be judged, so it is watched by this machine's own clock: one that grows is
 * alive, one that does not for twenty seconds is taken over. Its owner may wake up later all the same; it can't change
 * anything then, see {@link OwnStore}.
 * @throws ExportError `locked` naming process, host and start, or that workers of many machines are at it
 */
export async function takeLock(data: Store, options: LockOptions): Promise<Lock> {
  const lock = await takeAlone(data, options)
  try {
    if (!options.fresh) await refuseSharedRun(lock.store, options.sharedRun ?? null)
  } catch (error) {
    await lock.release()
    throw error
  }
  return lock
}

async function takeAlone(data: Store, options: LockOptions): Promise<Lock> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await claim(data, options)
    } catch (error) {
      // Two that start in the same instant both withdraw, or take away what the other has just begun to lay down; let
      // chance decide which of them comes first.
      const collided = error instanceof Held ? error.ageMs <= 2000 : isExportError(error, 'locked')
      if (!collided || attempt === 4) throw error
      await options.clock.sleep(50 + Math.random() * 250, options.stop)
    }
  }
}

async function claim(data: Store, options: LockOptions): Promise<Lock> {
  const { clock } = options
  const now = new Date(clock.now())
  const id = randomBytes(6).toString('hex')
  const path = claimPath(id)
  const own = await data.own(`${FOLDER}/${OPEN}`, id)
  const withdraw = async (): Promise<void> => {
    try {
      await own.leave()
    } finally {
      await data.remove(path)
    }
  }
  try {
    const self = describeSelf(now)
    await own.writeWhole(path, [claimText(self)])
    const life = await showSignsOfLife(own, path, self, clock)
    try {
      await takeOver(own, await rivals(own, id, now, options), id, options)
    } catch (error) {
      await life.stop()
      throw error
    }
    const release = async (): Promise<void> => {
      await life.stop()
      await withdraw()
    }
    return { store: own, lost: life.lost, release }
  } catch (error) {
    await withdraw()
    throw error
  }
}

type Rivals = {
  /** Their processes are no more. */
  readonly dead: ReadonlySet<string>
  /** They have shown no sign of life, which is not to say that they never will. */
  readonly silent: ReadonlySet<string>
}

/** @throws ExportError `locked` when one of them is alive */
async function rivals(store: Store, self: string, now: Date, options: LockOptions): Promise<Rivals> {
  const dead = new Set<string>()
  const silent = new Set<string>()
  const watched = new Map<string, Watched>()
  for (const name of await store.list(FOLDER)) {
    const id = idOf(name, 'lock')
    if (id === null || id === self) continue
    const bytes = await store.read(claimPath(id))
    if (bytes === null) continue
    const claim = readClaim(bytes, claimPath(id), options.fresh)
    const fate = claim === null ? null : fateOf(claim)
    if (claim === null) silent.add(id)
    else if (fate === 'alive') throw new Held(claim, claimPath(id), now)
    else if (fate === 'dead') dead.add(id)
    else watched.set(id, { claim, size: bytes.byteLength })
  }
  for (const id of await watch(store, watched, now, options)) silent.add(id)
  return { dead, silent }
}

type Watched = { readonly claim: Claim; readonly size: number }

/**
 * Waits for signs of life.
 * @returns those that showed none and are there still
 * @throws ExportError `locked` as soon as one shows one
 */
async function watch(
  store: Store,
  watched: Map<string, Watched>,
  now: Date,
  { clock, stop, warn }: LockOptions,
): Promise<Iterable<string>> {
  const [first] = watched.values()
  if (first === undefined) return []
  warn(
    `${holder(first.claim)}; whether it is alive can not be known from here, so it is taken over once it has shown no sign of life for ${SILENCE_MS / 1000} s`,
    SILENCE_MS,
  )
  let silenceMs = 0
  for (let lookedMs = clock.monotonicMs(); silenceMs < SILENCE_MS && watched.size > 0; ) {
    await clock.sleep(LOOK_MS, stop)
    const nowMs = clock.monotonicMs()
    // Time in which this machine slept says nothing about the other: that one may have slept as well.
    silenceMs += Math.min(nowMs - lookedMs, 2 * LOOK_MS)
    lookedMs = nowMs
    for (const [id, { claim, size }] of watched) {
      // Read, not asked for its size: over a network only opening a file makes sure to see what is new.
      const bytes = await store.read(claimPath(id))
      if (bytes === null) watched.delete(id)
      else if (bytes.byteLength !== size) throw new Held(claim, claimPath(id), now)
    }
  }
  return watched.keys()
}

/**
 * Ends what earlier owners may do, and gathers what they left. Claims go last: until then whoever comes after a crash
 * does all of it again.
 */
async function takeOver(
  own: OwnStore,
  { dead, silent }: Rivals,
  self: string,
  { growing }: LockOptions,
): Promise<void> {
  const names = new Set(await own.list(FOLDER))
  let mayWrite = silent.size > 0
  if (names.has(OPEN)) await own.takeOver(null, false)
  for (const name of names) {
    const id = idOf(name, OPEN)
    if (id === null || id === self) continue
    if (dead.has(id)) await own.takeOver(id, false)
    else if (silent.has(id)) await own.takeOver(id, true)
    else if (!names.has(`lock.${id}`)) {
      // Somebody is about to lay down a claim and will have to begin again; or somebody has deleted one.
      mayWrite = (await own.takeOver(id, true)) || mayWrite
    }
  }
  if (mayWrite) for (const path of await growing(own)) await own.renew(path)
  await own.settle()
  for (const id of [...dead, ...silent]) await own.remove(claimPath(id))
}

function claimPath(id: string): string {
  return `${FOLDER}/lock.${id}`
}

/** `lock.0123456789ab` → `0123456789ab` */
function idOf(name: string, kind: string): string | null {
  const id = name.startsWith(`${kind}.`) ? name.slice(kind.length + 1) : ''
  return /^[0-9a-f]{12}$/.test(id) ? id : null
}

/** @returns null when it makes no sense and everything is to be started over */
function readClaim(bytes: Uint8Array, path: string, fresh: boolean): Claim | null {
  try {
    return parseClaim(bytes, path)
  } catch (error) {
    if (fresh) return null
    throw error
  }
}

function holder({ pid, host, since }: Claim): string {
  return `Another run holds this pipeline: process ${pid} on host ${host} since ${since}`
}

class Held extends ExportError {
  /** How much earlier than ours the claim was laid down. */
  readonly ageMs: number

  constructor(claim: Claim, path: string, now: Date) {
    const elsewhere = claim.host !== hostname() || fateOf(claim) === 'unknown'
    super(
      'locked',
      holder(claim),
      path,
      elsewhere
        ? 'Wait for it to end: it has just shown a sign of life. Should its machine or container die, the next run takes over by itself.'
        : 'Wait for it to end; the lock of a process that died is taken over by itself.',
    )
    this.ageMs = now.getTime() - Date.parse(claim.since)
  }
}
