import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { type Clock, type Store, systemClock } from '../../src/core/index.ts'
import { readHolder, takeLock } from '../../src/state/index.ts'
import type { Lock, LockOptions } from '../../src/state/lock/lock.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore, write } from '../disk/temporary-store.ts'

const signal = new AbortController().signal
/** A clock whose waits end at once. */
function hasty(): Clock {
  let ahead = 0
  return {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + ahead,
    sleep: async (ms, stop) => {
      // Heartbeats keep their interval.
      if (ms > 500) return systemClock.sleep(ms, stop)
      stop.throwIfAborted()
      ahead += ms
    },
  }
}

/** A hasty clock, and what happens at the looks at another's lock file, by their number from 1 on. */
function atLooks(happens: (look: number, clock: Clock) => Promise<void> | void): Clock {
  const clock = hasty()
  let looks = 0
  return {
    ...clock,
    async sleep(ms, stop) {
      // Heartbeats wait for longer.
      if (ms === 500) await happens(++looks, clock)
      await clock.sleep(ms, stop)
    },
  }
}

let warnings: string[] = []

function take(clock: Clock = hasty(), options: Partial<LockOptions> = {}, from = store): Promise<Lock> {
  const warn = (message: string): void => void warnings.push(message)
  return takeLock(from, { clock, stop: signal, fresh: false, warn, ...options })
}

let store: Store
let root: string

beforeEach(() => {
  const temporary = temporaryStore()
  warnings = []
  store = temporary.store
  root = temporary.root
})

function lockFiles(): string[] {
  const names = existsSync(join(root, '_state')) ? readdirSync(join(root, '_state')) : []
  return names.filter((name) => name.startsWith('lock'))
}

/** The lock file that another thread of this process would write, with some of it changed. */
async function lockFileOf(change: Record<string, unknown>): Promise<string> {
  const lock = await take(systemClock)
  const [name] = lockFiles()
  const [line = ''] = readFileSync(join(root, '_state', name ?? ''), 'utf8').split('\n')
  const lockFile = JSON.parse(line)
  await lock.release()
  return `${JSON.stringify({ ...lockFile, instance: 'another', ...change })}\n`
}

// The least id: of two processes that start, it goes first.
const FOREIGN = '_state/lock.000000000001'
const OTHER_BOOT = '00000000-0000-0000-0000-000000000000'

// Who gets it while it is held, and by which holds it is taken over: `test/store/conformance/a-lock-holds`.
describe('the lock', () => {
  it('leaves no lock file of an owner that wrote it while another one took the lock', async () => {
    const late = await store.own('0123456789ab')
    let lists = 0
    const own: Store['own'] = async (owner) => {
      const owned = await store.own(owner)
      const list: Store['list'] = async (folder) => {
        const names = await owned.list(folder)
        // The second time the taker reads which owners have no lock file.
        if (++lists === 2) await late.create('_state/lock.0123456789ab', ['late'])
        return names
      }
      return Object.assign(Object.create(owned), { list })
    }
    const lock = await take(hasty(), {}, Object.assign(Object.create(store), { own }))
    expect(lists).toBe(2)
    expect(lockFiles()).toHaveLength(1)
    await lock.release()
    expect(lockFiles()).toEqual([])
  })

  it('ends the rights of a former owner before its lock file goes, so that a crash between loses neither', async () => {
    const path = '_state/lock.ffffffffffff'
    await write(store, path, 'damaged')
    const own: Store['own'] = async (owner) => {
      const takeOver = () => Promise.reject(new Error('a power cut'))
      return Object.assign(Object.create(await store.own(owner)), { takeOver })
    }
    const taken = take(hasty(), { fresh: true }, Object.assign(Object.create(store), { own }))
    await expect(taken).rejects.toThrow('a power cut')
    expect(lockFiles()).toEqual(['lock.ffffffffffff'])
  })

  it('that this process has given up is taken over at once, also when its file comes late', async () => {
    const former = await take(systemClock)
    const [name] = lockFiles()
    const path = `_state/${name}`
    const late = readFileSync(join(root, path), 'utf8')
    expect(await readHolder(store, Date.now())).not.toBeNull()
    await former.release()
    await write(store, path, late)
    expect(await readHolder(store, Date.now())).toBeNull()
    const lock = await take(systemClock)
    expect(lockFiles()).not.toContain(name)
    expect(warnings).toEqual([])
    await lock.release()
  })
})

// The identity of a process is read from /proc.
describe.skipIf(process.platform !== 'linux')('a lock file', () => {
  it.each([
    ['a process that is no more', { pid: 2 ** 22 + 1 }],
    ['an earlier process with the same id', { process_start: '1' }],
  ])('of %s is taken over at once', async (_, change) => {
    await write(store, FOREIGN, await lockFileOf(change))
    const lock = await take()
    expect(lockFiles()).toHaveLength(1)
    expect(lockFiles()).not.toContain('lock.000000000001')
    expect(warnings).toEqual([])
    await lock.release()
  })

  it.each([
    ['of another boot of this machine, or of one of its name', { boot: OTHER_BOOT }],
    ['of another host', { host: 'etl-2' }],
    ['of another container', { pid_namespace: 'pid:[1]' }],
    ['of a system that names no process numbering', { pid_namespace: null }],
  ])('%s is taken over once it has not moved for twenty seconds', async (_, change) => {
    await write(store, FOREIGN, await lockFileOf({ pid: 2 ** 22 + 1, ...change }))
    const clock = hasty()
    const begun = clock.monotonicMs()
    const lock = await take(clock)
    expect(clock.monotonicMs() - begun).toBeGreaterThanOrEqual(20_000)
    expect(lockFiles()).not.toContain('lock.000000000001')
    expect(warnings).toEqual([expect.stringMatching(/process \d+ on host .* 20 s without a heartbeat$/)])
    await lock.release()
  })

  it('of another host that moves is respected at once', async () => {
    const since = '2024-01-01T02:00:00.000Z'
    await write(store, FOREIGN, await lockFileOf({ host: 'etl-2', since }))
    let looks = 0
    const refusal = take(
      atLooks((look) => {
        looks = look
        if (look === 3) appendFileSync(join(root, FOREIGN), '.')
      }),
    )
    await expect(refusal).rejects.toEqual(anError('locked', FOREIGN))
    await expect(refusal).rejects.toThrow(`since ${since}`)
    await expect(refusal).rejects.toThrow('heartbeat')
    expect(looks).toBe(3)
    expect(lockFiles()).toEqual(['lock.000000000001'])
  })

  it('expires by the time that this machine was awake', async () => {
    await write(store, FOREIGN, await lockFileOf({ boot: OTHER_BOOT, since: '2024-01-01T02:00:00.000Z' }))
    const clock = atLooks(async (look, clock) => {
      // Both machines sleep for an hour, and this one wakes up first.
      if (look === 2) for (let s = 0; s < 7200; s++) await clock.sleep(500, signal)
      if (look === 9) appendFileSync(join(root, FOREIGN), '.')
    })
    await expect(take(clock)).rejects.toEqual(anError('locked', FOREIGN))
  })

  it('that is released while it is watched is not waited for', async () => {
    await write(store, FOREIGN, await lockFileOf({ boot: OTHER_BOOT }))
    let looks = 0
    const clock = atLooks((look) => {
      looks = look
      if (look === 3) rmSync(join(root, FOREIGN))
    })
    await (await take(clock)).release()
    expect(looks).toBe(3)
  })

  it('changes while it is held, as a heartbeat for other machines', async () => {
    const quick: Clock = { ...systemClock, sleep: (ms, stop) => systemClock.sleep(ms / 100, stop) }
    const lock = await take(quick)
    const [name = ''] = lockFiles()
    const heartbeats = (): number =>
      Number.parseInt(readFileSync(join(root, '_state', name), 'utf8').split('\n')[1]!, 10)
    const begun = heartbeats()
    await expect.poll(heartbeats).toBeGreaterThan(begun + 2)
    await lock.release()
    expect(lockFiles()).toEqual([])
  })

  it('that was taken over is detected, and the former owner changes nothing any more', async () => {
    let wake = (): void => {}
    const asleep = new Promise<void>((resolve) => (wake = resolve))
    const first = await take({ ...systemClock, sleep: () => asleep })
    await first.store.replace('_manifest.json', ['first'])
    const [name = ''] = lockFiles()
    const path = join(root, '_state', name)
    const lockFile = readFileSync(path, 'utf8')
    writeFileSync(path, lockFile.replace(/"boot":"[^"]*"/, `"boot":"${OTHER_BOOT}"`))
    const second = await take()
    wake()
    await expect(first.store.replace('_manifest.json', ['late'])).rejects.toEqual(anError('locked'))
    await expect.poll(() => first.lost.aborted).toBe(true)
    expect(first.lost.reason).toEqual(anError('locked'))
    expect(readFileSync(join(root, '_manifest.json'), 'utf8')).toBe('first')
    await first.release()
    expect(lockFiles()).toHaveLength(1)
    await second.release()
  })

  it('of a system without start times is respected while the process exists', async () => {
    const since = '2024-01-01T02:00:00.000Z'
    await write(store, FOREIGN, await lockFileOf({ process_start: null, since }))
    const refusal = take()
    await expect(refusal).rejects.toEqual(anError('locked', FOREIGN))
    await expect(refusal).rejects.toThrow('Wait for it to end')
    await expect(refusal).rejects.toThrow(`since ${since}`)
    expect(lockFiles()).toEqual(['lock.000000000001'])
  })

  it.each(['', 'not JSON', '{"pid":"1"}'])(
    'that cannot be parsed (%j) is damage, and stays',
    async (text) => {
      await write(store, FOREIGN, text)
      await expect(take()).rejects.toEqual(anError('damaged', FOREIGN))
      expect(lockFiles()).toEqual(['lock.000000000001'])
    },
  )

  it('is not a file whose name is only similar', async () => {
    for (const name of ['lock', 'lock.txt', 'lock.000000000001.1234abcd.tmp', 'checkpoint.jsonl'])
      await write(store, `_state/${name}`, 'x')
    await (await take()).release()
    expect(lockFiles()).toHaveLength(3)
  })
})

describe('of two processes that have written a lock file without the lock', () => {
  const [LEAST, GREATEST] = ['_state/lock.000000000000', '_state/lock.ffffffffffff']
  let sleeps = 0
  /** While one waits, the other withdraws or continues. */
  const meanwhile = (change: () => Promise<void>): Clock => ({
    ...systemClock,
    sleep: async (ms, stop) => {
      if (ms > 500) return systemClock.sleep(ms, stop)
      sleeps++
      await change()
    },
  })
  beforeEach(() => {
    sleeps = 0
  })

  it('the one with the greater name withdraws at once', async () => {
    await write(store, LEAST, await lockFileOf({}))
    await expect(take(meanwhile(async () => {}))).rejects.toEqual(anError('locked', LEAST))
    expect(sleeps).toBe(0)
  })

  it('the other waits for that, and gets the lock', async () => {
    await write(store, GREATEST, await lockFileOf({}))
    await (await take(meanwhile(async () => rmSync(join(root, GREATEST))))).release()
    expect(sleeps).toBe(1)
  })

  it('the other is refused as soon as the first has the lock all the same', async () => {
    const lockFile = await lockFileOf({})
    await write(store, GREATEST, lockFile)
    const clock = meanwhile(() => write(store, GREATEST, lockFile, '2 held\n'))
    await expect(take(clock)).rejects.toEqual(anError('locked', GREATEST))
    expect(sleeps).toBe(1)
    await expect(take(clock)).rejects.toEqual(anError('locked', GREATEST))
    expect(sleeps).toBe(1)
  })

  it('the other is refused if the first does not withdraw for twenty seconds', async () => {
    await write(store, GREATEST, await lockFileOf({}))
    await expect(take()).rejects.toEqual(anError('locked', GREATEST))
    expect(lockFiles()).toEqual(['lock.ffffffffffff'])
  })

  it('one that crashes meanwhile is not waited for any longer', async () => {
    const child = spawn('sleep', ['60'])
    await write(store, GREATEST, await lockFileOf({ pid: child.pid, process_start: null }))
    const crash = async (): Promise<void> => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    await (await take(meanwhile(crash))).release()
    expect(lockFiles()).toEqual([])
  })
})
