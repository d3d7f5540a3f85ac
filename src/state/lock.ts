import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { type Clock, ExportError, type FencedStore, isExportError, type Store } from '../core/index.ts'
import { type Claim, claimText, describeSelf, fateOf, isHeld, parseClaim } from './claim.ts'
import { showSignsOfLife } from './signs-of-life.ts'

export type Lock = {
  /** The data set as only the holder may change it: from the moment another takes over, every change is refused. */
  readonly store: Store
  /** Aborts when another run has taken over; the reason is an ExportError `locked`. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

/** For what a process holds a data set, where somebody else decides who may: a queue that hands out jobs. */
export type Hold = {
  /** A name that only the rightful holder and those before it have. */
  readonly id: string
  /** Names of earlier holds that this one succeeds, by the word of whoever gave it. */
  readonly succeeds: readonly string[]
  /** Whether it is the rightful one still: asked before another's claim is taken by that word. Fails where it is not. */
  readonly confirm: () => Promise<void>
}

export type LockOptions = {
  readonly clock: Clock
  /** Ends the wait for a rival. */
  readonly stop: AbortSignal
  /** Everything is started over, so a claim that can't be read stands in nobody's way. */
  readonly fresh: boolean
  /** Left out: nobody but this process decides. */
  readonly hold?: Hold | undefined
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
// Whoever withdraws does it in a few requests, of a second each where a store is slow.
const WITHDRAWAL_MS = 20_000

/**
 * Takes the data set for one process. Every process makes a folder of its own, lays down a claim file and then looks
 * at the others' claims: it goes on once none of those that it sees is alive. Of two that start together at least one
 * sees the other, so two can never both go on. Whoever goes on says so in its claim; all that see it withdraw. Among those
 * that have not come so far the one with the least name waits for the others, which withdraw: so one always goes on.
 *
 * A claim of this boot of this machine is alive while its process is, also when that is stopped; when it is dead it is
 * taken over at once. Any other claim can't be judged, so it is watched by this machine's own clock: one that grows is
 * alive, one that does not for twenty seconds is taken over. Its owner may wake up later all the same; it can't change
 * anything then, see {@link FencedStore}.
 *
 * A claim made for a hold that this one is told to succeed is taken over at once, whatever its process does.
 * @throws ExportError `locked` naming process, host and start
 */
export async function takeLock(data: Store, options: LockOptions): Promise<Lock> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await claim(data, options)
    } catch (error) {
      // Whoever goes on takes away what another one has just begun to lay down, which then learns who that is.
      if (!isExportError(error, 'locked') || error instanceof Held || attempt === 4) throw error
      await options.clock.sleep(50 + Math.random() * 250, options.stop)
    }
  }
}

async function claim(data: Store, options: LockOptions): Promise<Lock> {
  const { clock } = options
  const now = new Date(clock.now())
  const id = randomBytes(6).toString('hex')
  const path = claimPath(id)
  const own = await data.fenced(`${FOLDER}/${OPEN}`, id)
  const withdraw = async (): Promise<void> => {
    try {
      await own.release()
    } finally {
      await data.remove(path)
    }
  }
  try {
    const self = describeSelf(now, options.hold?.id ?? null)
    await own.writeWhole(path, [claimText(self)])
    const life = await showSignsOfLife(own, path, self, clock)
    try {
      const { dead, silent, succeeded } = await rivals(own, id, options)
      // This process may have been stopped since it was told.
      if (succeeded) await options.hold?.confirm()
      await life.hold()
      await takeOver(own, { dead, silent }, id, options)
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

/** Whether whoever decides has given the data set to this process instead: there is nothing to be waited for. */
function isSucceeded({ hold }: Claim, { hold: own }: LockOptions): boolean {
  return hold != null && own !== undefined && (hold === own.id || own.succeeds.includes(hold))
}

type Rivals = {
  /** Their processes are no more. */
  readonly dead: ReadonlySet<string>
  /** They have shown no sign of life, which is not to say that they never will. */
  readonly silent: ReadonlySet<string>
}

type Found = Rivals & {
  /** Whether one of them is silent by the word of whoever decides alone. */
  readonly succeeded: boolean
}

/**
 * Waits until none of the others whose claims are there is alive.
 * @throws ExportError `locked` when one of them has gone on, or is to come first
 */
async function rivals(store: Store, self: string, options: LockOptions): Promise<Found> {
  const { clock, stop } = options
  let succeeded = false
  const dead = new Set<string>()
  const silent = new Set<string>()
  const waitedFor = new Map<string, Rival>()
  for (const name of await store.list(FOLDER)) {
    const id = idOf(name, 'lock')
    if (id === null || id === self) continue
    const bytes = await store.read(claimPath(id))
    if (bytes === null) continue
    const claim = readClaim(bytes, claimPath(id), options.fresh)
    const fate = claim === null ? 'silent' : fateOf(claim)
    const isOurs = claim !== null && fate !== 'dead' && isSucceeded(claim, options)
    succeeded ||= isOurs
    if (claim === null || isOurs || fate === 'silent') silent.add(id)
    else if (fate === 'dead') dead.add(id)
    else {
      const rival = { id, claim, size: bytes.byteLength, isAlive: fate === 'alive', waitedMs: 0 }
      if (rival.isAlive) withdrawFrom(rival, bytes, self)
      waitedFor.set(id, rival)
    }
  }
  tellOfWait(waitedFor.values(), options)
  for (let lookedMs = clock.monotonicMs(); waitedFor.size > 0; ) {
    await clock.sleep(LOOK_MS, stop)
    const nowMs = clock.monotonicMs()
    // Time in which this machine slept says nothing about the other: that one may have slept as well.
    const waitedMs = Math.min(nowMs - lookedMs, 2 * LOOK_MS)
    lookedMs = nowMs
    for (const [id, rival] of waitedFor) {
      rival.waitedMs += waitedMs
      // Read, not asked for its size: over a network only opening a file makes sure to see what is new.
      const bytes = await store.read(claimPath(id))
      if (bytes === null) waitedFor.delete(id)
      else if (bytes.byteLength !== rival.size || rival.isAlive) {
        if (rival.isAlive && fateOf(rival.claim) === 'dead') {
          waitedFor.delete(id)
          dead.add(id)
          continue
        }
        rival.isAlive = true
        withdrawFrom(rival, bytes, self)
        if (rival.waitedMs >= WITHDRAWAL_MS) throw new Held(rival.claim, claimPath(id))
      } else if (rival.waitedMs >= SILENCE_MS) {
        waitedFor.delete(id)
        silent.add(id)
      }
    }
  }
  return { dead, silent, succeeded }
}

type Rival = {
  readonly id: string
  readonly claim: Claim
  /** Of its claim, when it was first seen. */
  readonly size: number
  /** Whether it is known to be; else it has shown no sign of it yet. */
  isAlive: boolean
  waitedMs: number
}

/** @throws ExportError `locked` when a living rival holds the data set, or comes first of those that would */
function withdrawFrom({ id, claim }: Rival, bytes: Uint8Array, self: string): void {
  if (isHeld(bytes) || id < self) throw new Held(claim, claimPath(id))
}

function tellOfWait(rivals: Iterable<Rival>, { warn }: LockOptions): void {
  for (const { claim, isAlive } of rivals) {
    if (isAlive) continue
    warn(
      `${holder(claim)}; whether it is alive can not be known from here, so it is taken over once it has shown no sign of life for ${SILENCE_MS / 1000} s`,
      SILENCE_MS,
    )
    return
  }
}

/**
 * Ends what earlier owners may do, and gathers what they left. Claims go last: until then whoever comes after a crash
 * does all of it again.
 */
async function takeOver(
  own: FencedStore,
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
  if (mayWrite) for (const path of await growing(own)) await own.replaceByCopy(path)
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
  constructor(claim: Claim, path: string) {
    const elsewhere = claim.host !== hostname() || fateOf(claim) === 'unknown'
    super(
      'locked',
      holder(claim),
      path,
      elsewhere
        ? 'Wait for it to end: it has just shown a sign of life. Should its machine or container die, the next run takes over by itself.'
        : 'Wait for it to end; the lock of a process that died is taken over by itself.',
    )
  }
}
