import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OwnedStore } from '../../../src/core/index.ts'
import { anError } from '../../disk/errors.ts'
import { pieces } from '../../support/pieces.ts'
import { contentsOf, type MakeWorld, nextOwner, type World } from './world.ts'

const SEALED = ['_state/sealed/0', '_state/sealed/1']
const REPLACED = ['_state/checkpoint.jsonl', '_manifest.json']
const SHARDS = ['a/part-00000', 'a/part-00001', 'ab/part-00000', 'B/part-00000'].map(
  (name) => `credentials/${name}.csv`,
)
const ALL = [...SEALED, ...REPLACED, ...SHARDS, '_state/log/0000000000000001']
/** The beginning of a name is no folder. */
const FOLDERS = ['', '_state/sealed', '_state/log', 'credentials', 'credentials/a', 'credentials/ab', 'cred']

type Step =
  | { readonly do: 'create' | 'replace'; readonly path: string; readonly text: string }
  | {
      readonly do: 'build'
      readonly path: string
      readonly pieces: readonly string[]
      readonly isWhole: boolean
    }
  | { readonly do: 'publish'; readonly from: string; readonly to: string }
  | { readonly do: 'remove'; readonly path: string }
  | { readonly do: 'change owner'; readonly how: 'dead' | 'stopped' | 'left' }

const text = fc.string({ maxLength: 30 })
const from = (names: readonly string[]) => fc.constantFrom(...names)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('create' as const), path: from([...ALL, ...SEALED]), text }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('replace' as const), path: from(REPLACED), text }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('build' as const),
      path: from(SEALED),
      pieces: fc.array(text, { maxLength: 4 }),
      isWhole: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('publish' as const), from: from(SEALED), to: from(SHARDS) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), path: from(ALL) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('change owner' as const),
      how: fc.constantFrom('dead' as const, 'stopped' as const, 'left' as const),
    }),
  },
)

export function anySequence(make: MakeWorld, numRuns: number): void {
  describe('any sequence of operations', () => {
    it('has the same result as in memory, whoever is stopped between any two of them', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 30 }), async (steps) => {
          const pair = await Pair.of(await make())
          for (const each of steps) await pair.take(each)
          await pair.compare()
        }),
        { numRuns },
      )
    })
  })
}

/** A store, and its expected content. */
class Pair {
  readonly #world: World
  readonly #files = new Map<string, string>()
  #own: OwnedStore

  private constructor(world: World, own: OwnedStore) {
    this.#world = world
    this.#own = own
  }

  static async of(world: World): Promise<Pair> {
    return new Pair(world, await nextOwner(world))
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'create':
        return this.#created(step.path, step.text, await this.#own.create(step.path, [step.text]))
      case 'replace':
        await this.#own.replace(step.path, [step.text])
        this.#files.set(step.path, step.text)
        return
      case 'build': {
        const building = this.#own.build(pieces(step.pieces, step.isWhole), () => step.path)
        if (!step.isWhole) return expect(building).rejects.toThrow('no more')
        await building
        if (!this.#files.has(step.path)) this.#files.set(step.path, step.pieces.join(''))
        return
      }
      case 'publish':
        return this.#publish(step.from, step.to)
      case 'remove':
        await this.#own.remove(step.path)
        this.#files.delete(step.path)
        return
      case 'change owner':
        await this.#changeOwner(step.how)
        await this.compare()
    }
  }

  async compare(): Promise<void> {
    const other = this.#world.open()
    const expected = ALL.map((path) => [path, this.#files.get(path) ?? null])
    expect(await contentsOf(other, ALL)).toEqual(Object.fromEntries(expected))
    for (const folder of FOLDERS) {
      const start = folder === '' ? '' : `${folder}/`
      const below = [...this.#files.keys()].filter((path) => path.startsWith(start))
      // An owner is one by a file of its own.
      const names = new Set(folder === '' ? ['_state'] : [])
      for (const path of below) names.add(path.slice(start.length).split('/')[0]!)
      expect(await other.list(folder), folder).toEqual([...names].sort())
    }
  }

  #created(path: string, content: string, made: boolean): void {
    expect(made, path).toBe(!this.#files.has(path))
    if (made) this.#files.set(path, content)
  }

  async #publish(source: string, target: string): Promise<void> {
    const content = this.#files.get(source)
    const publishing = this.#own.publish(source, target)
    const isThere = this.#files.has(target)
    if ((content === undefined) !== isThere)
      return await expect(publishing).rejects.toEqual(anError('storage', ...(isThere ? [target] : [])))
    await publishing
    if (content === undefined) return
    this.#files.set(target, content)
    this.#files.delete(source)
  }

  async #changeOwner(how: 'dead' | 'stopped' | 'left'): Promise<void> {
    const before = this.#own
    if (how === 'left') await before.release()
    this.#own = await nextOwner(this.#world)
    if (how !== 'stopped') return
    const late = [
      () => before.replace('_manifest.json', ['late']),
      () => before.remove('credentials/a/part-00000.csv'),
      () => before.publish('_state/sealed/0', 'credentials/a/part-00000.csv'),
      () => before.requireLock(),
    ]
    for (const change of late) await expect(change()).rejects.toEqual(anError('locked'))
  }
}
