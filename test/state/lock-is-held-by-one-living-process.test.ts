import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Clock, type ExportError, type Store, systemClock } from '../../src/core/index.ts'
import { takeLock } from '../../src/state/index.ts'
import { anError } from '../disk/errors.ts'
import { storeAt, temporaryStore } from '../disk/temporary-store.ts'

const SCRIPT = join(import.meta.dirname, 'take-the-lock.mjs')
const signal = new AbortController().signal
/** Does not wait between its tries. */
const hasty: Clock = { ...systemClock, sleep: async () => {} }

let store: Store
let root: string
const children: ChildProcess[] = []

beforeEach(() => {
  const temporary = temporaryStore()
  store = temporary.store
  root = temporary.root
})

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

type Answer = { readonly held: boolean; readonly kind?: string; readonly message?: string }

type Taker = {
  readonly pid: number
  /** Asks for the lock and says how that went. */
  take(): Promise<Answer>
  /** Gives the lock back. */
  free(): Promise<Answer>
  signal(name: NodeJS.Signals): void
  /** Kills it and waits until it is gone. */
  end(name: NodeJS.Signals): Promise<void>
  /** Has it give the lock back and end. */
  leave(): Promise<void>
}

async function spawnTaker(): Promise<Taker> {
  const child = spawn(process.execPath, [SCRIPT, root], { stdio: ['pipe', 'pipe', 'inherit'] })
  children.push(child)
  const lines = createInterface({ input: child.stdout })
  const exited = once(child, 'exit')
  const { ready } = (await nextLine(lines)) as { ready: number }
  const ask = async (command: string): Promise<Answer> => {
    const answer = nextLine(lines)
    child.stdin.write(`${command}\n`)
    return (await answer) as Answer
  }
  return {
    pid: ready,
    take: () => ask('take'),
    free: () => ask('free'),
    signal: (name) => child.kill(name),
    end: async (name) => {
      child.kill(name)
      await exited
    },
    leave: async () => {
      child.stdin.end()
      await exited
    },
  }
}

async function nextLine(lines: Interface): Promise<unknown> {
  const [line] = await once(lines, 'line')
  return JSON.parse(line)
}

function claims(): string[] {
  return existsSync(join(root, '_state')) ? readdirSync(join(root, '_state')) : []
}

/** The claim that this process would lay down, with some of it changed. */
async function claimOf(change: Record<string, unknown>): Promise<string> {
  const lock = await takeLock(store, { clock: systemClock, stop: signal, fresh: false })
  const [name] = claims()
  const claim = JSON.parse(readFileSync(join(root, '_state', name ?? ''), 'utf8'))
  await lock.release()
  return `${JSON.stringify({ ...claim, ...change })}\n`
}

const FOREIGN = '_state/lock.0123456789ab'

describe('the lock', () => {
  it('is refused to a second one in the same process, until it is given back', async () => {
    const lock = await takeLock(store, { clock: hasty, stop: signal, fresh: false })
    await expect(takeLock(store, { clock: hasty, stop: signal, fresh: false })).rejects.toEqual(
      anError('locked'),
    )
    expect(claims()).toHaveLength(1)
    await lock.release()
    await (await takeLock(store, { clock: hasty, stop: signal, fresh: false })).release()
    expect(claims()).toEqual([])
  })

  it('is refused to a second process, naming process, host and start of the first', async () => {
    const before = Date.now()
    const first = await spawnTaker()
    expect(await first.take()).toEqual({ held: true })
    const refusal = await takeLock(store, { clock: hasty, stop: signal, fresh: false }).then(
      () => null,
      (error: ExportError) => error,
    )
    expect(refusal).toEqual(anError('locked'))
    const [, pid, host, since] = /process (\d+) on host (\S+) since (\S+)$/.exec(refusal?.what ?? '') ?? []
    expect([Number(pid), host]).toEqual([first.pid, hostname()])
    expect(Date.parse(since ?? '')).toBeGreaterThanOrEqual(before)
    expect(Date.parse(since ?? '')).toBeLessThanOrEqual(Date.now())
    await first.leave()
    expect(claims()).toEqual([])
    await (await takeLock(store, { clock: hasty, stop: signal, fresh: false })).release()
  })

  it('of a killed process is taken over at once', async () => {
    const first = await spawnTaker()
    expect(await first.take()).toEqual({ held: true })
    await first.end('SIGKILL')
    expect(claims()).toHaveLength(1)
    const lock = await takeLock(store, { clock: hasty, stop: signal, fresh: false })
    expect(claims()).toHaveLength(1)
    await lock.release()
    expect(claims()).toEqual([])
  })

  it('of a stopped process stays its own, until it is killed', async () => {
    const first = await spawnTaker()
    expect(await first.take()).toEqual({ held: true })
    first.signal('SIGSTOP')
    await expect(takeLock(store, { clock: hasty, stop: signal, fresh: false })).rejects.toEqual(
      anError('locked'),
    )
    first.signal('SIGCONT')
    await expect(takeLock(store, { clock: hasty, stop: signal, fresh: false })).rejects.toEqual(
      anError('locked'),
    )
    first.signal('SIGSTOP')
    await first.end('SIGKILL')
    await (await takeLock(store, { clock: hasty, stop: signal, fresh: false })).release()
  })

  it('is never held by two of several that start together, and one of them gets it in the end', async () => {
    const takers = await Promise.all(Array.from({ length: 3 }, spawnTaker))
    for (let round = 0; round < 4; round++) {
      const answers = await Promise.all(takers.map((taker) => taker.take()))
      const winners = takers.filter((_, index) => answers[index]?.held)
      expect(winners.length).toBeLessThanOrEqual(1)
      for (const { held, kind } of answers) if (!held) expect(kind).toBe('locked')
      for (const winner of winners) await winner.free()
      expect(claims()).toEqual([])
    }
    expect((await takers[0]?.take())?.held).toBe(true)
  })

  it('goes to one of two that collide, as they wait for different times', async () => {
    const colliding = (): Clock => ({ ...systemClock, sleep: (ms, stop) => systemClock.sleep(ms / 5, stop) })
    const results = await Promise.allSettled([
      takeLock(store, { clock: colliding(), stop: signal, fresh: false }),
      takeLock(storeAt(root), { clock: colliding(), stop: signal, fresh: false }),
    ])
    const held = results.filter(({ status }) => status === 'fulfilled')
    expect(held.length).toBeLessThanOrEqual(1)
    for (const result of results) {
      if (result.status === 'fulfilled') await result.value.release()
      else expect(result.reason).toEqual(anError('locked'))
    }
    expect(claims()).toEqual([])
  })

  it('is not waited for once the run is told to stop', async () => {
    await store.writeWhole(FOREIGN, [await claimOf({ since: new Date().toISOString() })])
    const stop = new AbortController()
    stop.abort(new Error('told to stop'))
    await expect(takeLock(store, { clock: systemClock, stop: stop.signal, fresh: false })).rejects.toThrow()
    expect(claims()).toEqual(['lock.0123456789ab'])
  })
})

// What tells one process from another is read from /proc.
describe.skipIf(process.platform !== 'linux')('a claim', () => {
  it.each([
    ['a process that is no more', { pid: 2 ** 22 + 1 }],
    ['an earlier process with the same id', { process_start: '1' }],
    ['a time before the machine was started anew', { boot: '00000000-0000-0000-0000-000000000000' }],
  ])('of %s is taken over', async (_, change) => {
    await store.writeWhole(FOREIGN, [await claimOf(change)])
    const lock = await takeLock(store, { clock: hasty, stop: signal, fresh: false })
    expect(claims()).toHaveLength(1)
    expect(claims()).not.toContain('lock.0123456789ab')
    await lock.release()
  })

  it.each([
    ['another host', { host: 'etl-2', pid: 2 ** 22 + 1, boot: 'another' }, 'host etl-2'],
    ['another container', { pid_namespace: 'pid:[1]', pid: 2 ** 22 + 1 }, 'container'],
    ['a system that tells no start times', { process_start: null }, 'Wait for it to end'],
  ])('of %s is respected, with what to do', async (_, change, words) => {
    await store.writeWhole(FOREIGN, [await claimOf({ ...change, since: '2024-01-01T02:00:00.000Z' })])
    const refusal = takeLock(store, { clock: hasty, stop: signal, fresh: false })
    await expect(refusal).rejects.toEqual(anError('locked', FOREIGN))
    await expect(refusal).rejects.toThrow(words)
    await expect(refusal).rejects.toThrow('since 2024-01-01T02:00:00.000Z')
    expect(claims()).toEqual(['lock.0123456789ab'])
  })

  it.each(['', 'not JSON', '{}', '{"pid":"1"}', '[]'])(
    'that can not be read (%j) is damage, and stays',
    async (text) => {
      await store.writeWhole(FOREIGN, [text])
      await expect(takeLock(store, { clock: hasty, stop: signal, fresh: false })).rejects.toEqual(
        anError('damaged', FOREIGN),
      )
      expect(claims()).toEqual(['lock.0123456789ab'])
    },
  )

  it('is no concern of files that only look like one', async () => {
    for (const name of ['lock', 'lock.txt', 'lock.0123456789ab.1234abcd.tmp', 'checkpoint.jsonl'])
      await store.writeWhole(`_state/${name}`, ['x'])
    await (await takeLock(store, { clock: hasty, stop: signal, fresh: false })).release()
    expect(claims()).toHaveLength(4)
  })

  it('is for its owner alone, and there only once it is whole', async () => {
    const lock = await takeLock(store, { clock: hasty, stop: signal, fresh: false })
    expect(claims()).toEqual([expect.stringMatching(/^lock\.[0-9a-f]{12}$/)])
    await lock.release()
    await lock.release()
  })
})

it('waits a moment and tries again only where the other claim is fresh', async () => {
  const now = Date.now()
  const [old, fresh] = [
    await claimOf({ since: new Date(now - 10_000).toISOString() }),
    await claimOf({ since: new Date(now - 500).toISOString() }),
  ]
  let sleeps = 0
  const clock: Clock = {
    ...systemClock,
    now: () => now,
    sleep: async () => {
      sleeps++
      // The other one has given up in the meantime.
      await store.remove(FOREIGN)
    },
  }
  await store.writeWhole(FOREIGN, [old])
  await expect(takeLock(store, { clock: clock, stop: signal, fresh: false })).rejects.toEqual(
    anError('locked', FOREIGN),
  )
  expect(sleeps).toBe(0)
  await store.writeWhole(FOREIGN, [fresh])
  await (await takeLock(store, { clock: clock, stop: signal, fresh: false })).release()
  expect(sleeps).toBe(1)
})
