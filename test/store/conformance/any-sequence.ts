import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { FencedStore, Log } from '../../../src/core/index.ts'
import { anError } from '../../disk/errors.ts'
import { add, type MakeWorld, newOwner, streamed, takeOverAll, type World } from './world.ts'

const OWN = ['_state/open/0.part', '_state/open/0.0.log', '_state/open/1.part']
const LOGS = ['_state/checkpoint.jsonl', '_state/ids/0.0.ids']
const READ_BY_OTHERS = [
  '_manifest.json',
  'credentials/a/part-00000.csv',
  'credentials/a/part-00001.csv',
  'credentials/ab/part-00000.csv',
]
const MAY_GROW = [...OWN, ...LOGS]
const ALL = [...MAY_GROW, ...READ_BY_OTHERS]
/** Folders that contain only files. */
const FOLDERS = ['_state/open', '_state/ids', 'credentials/a', 'credentials/ab']
const REMOVED = ['_state/ids', 'credentials/a', 'credentials']

type Step =
  | { readonly do: 'write'; readonly path: string; readonly bytes: Uint8Array }
  | { readonly do: 'append'; readonly path: string; readonly bytes: Uint8Array; readonly flush: boolean }
  | { readonly do: 'cut'; readonly path: string; readonly share: number }
  | { readonly do: 'publish'; readonly from: string; readonly to: string }
  | { readonly do: 'remove'; readonly path: string }
  | { readonly do: 'remove folder'; readonly folder: string }
  | { readonly do: 'change owner'; readonly how: 'dead' | 'silent' | 'left' }

const bytes = fc.uint8Array({ minLength: 1, maxLength: 40 })
const from = (names: readonly string[]) => fc.constantFrom(...names)

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ do: fc.constant('write' as const), path: from(ALL), bytes }) },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('append' as const),
        path: from(MAY_GROW),
        bytes,
        flush: fc.boolean(),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('cut' as const),
        path: from(MAY_GROW),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant('publish' as const), from: from(OWN), to: from(ALL) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('publish' as const),
        from: from(READ_BY_OTHERS),
        to: from(OWN),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), path: from(ALL) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('remove folder' as const), folder: from(REMOVED) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('change owner' as const),
        how: fc.constantFrom('dead' as const, 'silent' as const, 'left' as const),
      }),
    },
  ),
  { minLength: 3, maxLength: 25 },
)

export function anySequence(make: MakeWorld, numRuns: number): void {
  describe('any sequence of operations', () => {
    it('has the same result as in memory', async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          const pair = await Pair.of(await make())
          try {
            for (const step of sequence) await pair.take(step)
            await pair.compare()
          } finally {
            await pair.close()
          }
        }),
        { numRuns },
      )
    })
  })
}

/** The expected content of a file: what is durable, and what was appended since and may be visible or not. */
type Content = { lasting: Buffer; pending: Buffer }

/** A store, and its expected content. */
class Pair {
  readonly #world: World
  readonly #files = new Map<string, Content>()
  readonly #logs = new Map<string, Log>()
  #own: FencedStore
  #owner: string

  private constructor(world: World, own: FencedStore, owner: string) {
    this.#world = world
    this.#own = own
    this.#owner = owner
  }

  static async of(world: World): Promise<Pair> {
    const owner = newOwner()
    return new Pair(world, await world.open().fenced('_state/open', owner), owner)
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'write':
        await this.#closeLog(step.path)
        await this.#own.writeWhole(step.path, [step.bytes])
        this.#files.set(step.path, lasting(step.bytes))
        break
      case 'append':
        return this.#append(step.path, step.bytes, step.flush)
      case 'cut':
        return this.#cut(step.path, step.share)
      case 'publish':
        return this.#publish(step.from, step.to)
      case 'remove':
        await this.#closeLog(step.path)
        await this.#own.remove(step.path)
        this.#files.delete(step.path)
        break
      case 'remove folder': {
        const inside = ALL.filter((path) => path.startsWith(`${step.folder}/`))
        for (const path of inside) await this.#closeLog(path)
        await this.#own.removeFolder(step.folder)
        for (const path of inside) this.#files.delete(path)
        break
      }
      case 'change owner':
        await this.#changeOwner(step.how)
        await this.compare()
    }
  }

  /** Compares all readable content with the expected one: for the owner, and for other readers. */
  async compare(): Promise<void> {
    const other = this.#world.open()
    for (const path of ALL) {
      const stores = OWN.includes(path) ? [this.#own] : [this.#own, other]
      for (const store of stores) {
        const found = await store.read(path)
        this.#requireContent(path, found === null ? null : Buffer.from(found))
        if (found === null) expect(await store.size(path)).toBeNull()
        else {
          expect(await store.size(path)).toBe(found.length)
          expect((await streamed(store, path)).equals(found)).toBe(true)
        }
      }
    }
    for (const folder of FOLDERS) {
      const names = [...this.#files.keys()]
        .filter((path) => path.startsWith(`${folder}/`))
        .map((path) => path.slice(folder.length + 1))
      expect(await this.#own.list(folder), folder).toEqual(names.sort())
    }
  }

  async close(): Promise<void> {
    for (const path of [...this.#logs.keys()]) await this.#closeLog(path)
  }

  #requireContent(path: string, found: Buffer | null): void {
    const expected = this.#files.get(path)
    if (expected === undefined || found === null) {
      expect(found === null, `${path} is ${found === null ? 'not there' : 'there'}`).toBe(
        expected === undefined,
      )
      return
    }
    const most = Buffer.concat([expected.lasting, expected.pending])
    expect(found.subarray(0, expected.lasting.length), path).toEqual(expected.lasting)
    expect(most.subarray(0, found.length), path).toEqual(found)
  }

  async #append(path: string, added: Uint8Array, flush: boolean): Promise<void> {
    const content = this.#files.get(path) ?? lasting(new Uint8Array())
    let log = this.#logs.get(path)
    // An empty log may be missing before its first flush.
    const isNew = content.lasting.length === 0
    if (log === undefined) {
      log = await this.#own.openLog(path, content.lasting.length)
      content.pending = Buffer.alloc(0)
      this.#logs.set(path, log)
      this.#files.set(path, content)
    }
    await log.append([added])
    content.pending = Buffer.concat([content.pending, added])
    expect(log.size).toBe(content.lasting.length + content.pending.length)
    if (!flush && !isNew) return
    await log.fsync()
    this.#files.set(path, lasting(Buffer.concat([content.lasting, content.pending])))
  }

  async #cut(path: string, share: number): Promise<void> {
    await this.#closeLog(path)
    const there = this.#files.get(path)
    const size = Math.ceil((there?.lasting.length ?? 0) * share)
    if (there === undefined || size === 0) {
      await expect(this.#own.openLog(path, (there?.lasting.length ?? 0) + 100)).rejects.toEqual(
        anError('damaged', path),
      )
      return
    }
    this.#logs.set(path, await this.#own.openLog(path, size))
    this.#files.set(path, lasting(there.lasting.subarray(0, size)))
  }

  async #publish(source: string, target: string): Promise<void> {
    if (source === target) return
    for (const path of [source, target]) {
      await this.#flushLog(path)
      await this.#closeLog(path)
    }
    const content = this.#files.get(source)
    if (content === undefined && !this.#files.has(target)) {
      await expect(this.#own.publish(source, target)).rejects.toEqual(anError('storage'))
      return
    }
    // After a crash before the last flush, the log is truncated before it is published.
    if (content !== undefined && content.pending.length > 0) {
      await (await this.#own.openLog(source, content.lasting.length)).close()
      content.pending = Buffer.alloc(0)
    }
    await this.#own.publish(source, target)
    if (content === undefined) return
    this.#files.set(target, content)
    this.#files.delete(source)
  }

  async #changeOwner(how: 'dead' | 'silent' | 'left'): Promise<void> {
    const [before, late] = [this.#own, new Map(this.#logs)]
    if (how === 'left') for (const path of late.keys()) await this.#flushLog(path)
    if (how !== 'silent') await this.close()
    if (how === 'left') await before.release()
    this.#logs.clear()
    this.#owner = newOwner()
    this.#own = await this.#world.open().fenced('_state/open', this.#owner)
    await takeOverAll(this.#own, this.#owner, how === 'silent', LOGS)
    if (how !== 'silent') return
    for (const [path, log] of late) {
      const adding = add(log, 'late')
      if (OWN.includes(path)) await adding.catch(() => {})
      else await expect(adding, path).rejects.toEqual(anError('locked'))
      await log.close().catch(() => {})
    }
    await expect(before.writeWhole('_manifest.json', ['late'])).rejects.toEqual(anError('locked'))
    await expect(before.remove('credentials/a/part-00000.csv')).rejects.toEqual(anError('locked'))
  }

  async #flushLog(path: string): Promise<void> {
    const content = this.#files.get(path)
    if (content === undefined || !this.#logs.has(path)) return
    await this.#logs.get(path)!.fsync()
    this.#files.set(path, lasting(Buffer.concat([content.lasting, content.pending])))
  }

  async #closeLog(path: string): Promise<void> {
    await this.#logs.get(path)?.close()
    this.#logs.delete(path)
  }
}

function lasting(content: Uint8Array): Content {
  return { lasting: Buffer.from(content), pending: Buffer.alloc(0) }
}
