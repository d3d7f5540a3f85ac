import { describe, expect, it } from 'vitest'
import type { OwnedStore } from '../../../src/core/index.ts'
import { anError } from '../../disk/errors.ts'
import { newOwner } from '../../disk/temporary-store.ts'
import { pieces } from '../../support/pieces.ts'
import { contentsOf, type MakeWorld, nextOwner, textOf, type World } from './world.ts'

const CHECKPOINT = '_state/checkpoint.jsonl'
const SHARD = 'credentials/a/part-00000.csv'
const SEALED = '_state/sealed/0'
const ALL = [CHECKPOINT, SHARD, SEALED, '_manifest.json', '_new.json', '_state/log/1', '_state/log/2']

/** Changes that a former owner may try before it knows of the takeover, beside those of `any-sequence`. */
const LATE_CHANGES: readonly [name: string, change: (own: OwnedStore) => Promise<unknown>][] = [
  ['writes a large file', (own) => own.replace('_new.json', [Buffer.alloc(9 << 20)])],
  [
    'takes others over',
    async (own) => {
      await own.takeOver([newOwner()])
      await own.requireLock()
    },
  ],
]

/** An owner at work: one file is published and another is not. */
async function ownerAtWork(world: World) {
  const id = newOwner()
  const own = await world.open().own(id)
  await own.replace(CHECKPOINT, ['line'])
  await own.create('_state/sealed/9', ['shard'])
  await own.publish('_state/sealed/9', SHARD)
  await own.replace('_manifest.json', ['manifest'])
  await own.create('_state/log/1', ['entry'])
  await own.create(SEALED, ['rows'])
  return { id, own }
}

export function oneOwnerAtATime(make: MakeWorld): void {
  describe('an owner', () => {
    it('is listed by its name while it is an owner', async () => {
      const { open, names } = await make()
      const id = newOwner()
      const own = await open().own(id)
      expect(await open().list('_state')).toEqual([`open.${id}`])
      await own.requireLock()
      await own.release()
      expect(await open().list('_state')).toEqual([])
      expect(await names()).toEqual([])
    })

    it('has many successors, each of which crashes during the takeover', async () => {
      const world = await make()
      const { own } = await ownerAtWork(world)
      const before = await contentsOf(own, ALL)
      for (let crash = 0; crash < 3; crash++) {
        const starting = await world.open().own(newOwner())
        if (crash === 1) await nextOwner(world)
        if (crash === 1) await expect(starting.requireLock()).rejects.toEqual(anError('locked'))
      }
      const last = await nextOwner(world)
      expect(await contentsOf(last, ALL)).toEqual(before)
      expect((await last.list('_state')).filter((name) => name.startsWith('open.'))).toHaveLength(1)
    })
  })

  describe('an owner after a takeover', () => {
    it.each(LATE_CHANGES)('gets an error when it %s, and changes nothing', async (_, change) => {
      const world = await make()
      const { own } = await ownerAtWork(world)
      const next = await nextOwner(world)
      const before = await contentsOf(world.open(), ALL)
      await expect(change(own)).rejects.toEqual(anError('locked'))
      await own.release()
      await next.requireLock()
      expect(await contentsOf(world.open(), ALL)).toEqual(before)
    })

    it('makes no entry of the log that its successor has made, and no file that it has begun', async () => {
      const world = await make()
      const { own } = await ownerAtWork(world)
      let next = own
      const late = async function* () {
        yield* pieces(['row ', Buffer.alloc(9 << 20)])
        next = await nextOwner(world)
      }
      await expect(own.build(late(), () => '_state/sealed/1')).rejects.toEqual(anError('locked'))
      expect(await next.create('_state/log/2', ['of the next'])).toBe(true)
      await expect(own.create('_state/log/2', ['late'])).rejects.toEqual(anError('locked'))
      expect(await contentsOf(world.open(), ['_state/log/2', '_state/sealed/1'])).toEqual({
        '_state/log/2': 'of the next',
        '_state/sealed/1': null,
      })
    })

    it('does not undo a change that its successor makes while it changes the same file', async () => {
      const world = await make()
      for (let round = 0; round < 4; round++) {
        const id = newOwner()
        const own = await world.open().own(id)
        await own.replace('_manifest.json', [`before ${round}`])
        const next = await world.open().own(newOwner())
        const late = own.replace('_manifest.json', ['late']).catch((error: unknown) => {
          expect(error).toEqual(anError('locked'))
        })
        await next.takeOver([id])
        await next.replace('_manifest.json', [`next ${round}`])
        await late
        expect(await textOf(world.open(), '_manifest.json')).toBe(`next ${round}`)
        await next.release()
      }
    })
  })
}
