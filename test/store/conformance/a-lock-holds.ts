import { describe, expect, it } from 'vitest'
import { type Clock, ExportError, type Store, systemClock } from '../../../src/core/index.ts'
import { type Hold, type Lock, takeLock } from '../../../src/state/lock/lock.ts'
import { anError } from '../../disk/errors.ts'
import { cases } from '../../support/thorough.ts'
import { type MakeWorld, textOf } from './world.ts'

/** Waits a twentieth of the time. */
const quick: Clock = { ...systemClock, sleep: (ms, stop) => systemClock.sleep(ms / 20, stop) }

function take(store: Store, hold?: Hold, warn: (message: string) => void = () => {}): Promise<Lock> {
  return takeLock(store, { clock: quick, stop: new AbortController().signal, fresh: false, hold, warn })
}

export function aLockHolds(make: MakeWorld): void {
  describe('a lock', () => {
    it('admits one holder at a time, each of which finds the state that the one before left', async () => {
      const { open } = await make()
      const first = await take(open())
      await expect(take(open())).rejects.toEqual(anError('locked'))
      await first.store.create('_state/log/1', ['rows'])
      await first.release()
      const second = await take(open())
      await expect(take(open())).rejects.toEqual(anError('locked'))
      expect(await textOf(second.store, '_state/log/1')).toBe('rows')
      await second.store.remove('_state/log/1')
      await second.release()
      expect(await ownersIn(open())).toEqual([])
    })

    it('goes to one of four that start at once; the others are told', async () => {
      const { open } = await make()
      for (let round = 0; round < cases(20, 3); round++) {
        const started = await Promise.allSettled(Array.from({ length: 4 }, () => take(open())))
        const locks = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
        expect(locks).toHaveLength(1)
        for (const each of started)
          if (each.status === 'rejected') expect(each.reason).toEqual(anError('locked'))
        for (const lock of locks) await lock.release()
      }
      expect(await ownersIn(open())).toEqual([])
    })

    it('passes at once to the named successor of its holder, which can change nothing from then on', async () => {
      const { open } = await make()
      const confirm = async (): Promise<void> => {}
      const first = await take(open(), { id: 'first', succeeds: [], confirm })
      await first.store.create('_state/log/1', ['counts'])
      await first.store.create('_state/sealed/0', ['a shard'])
      // A lock without a holder's name does not pass.
      await expect(take(open(), { id: 'another', succeeds: ['unknown'], confirm })).rejects.toEqual(
        anError('locked'),
      )
      await expect(take(open())).rejects.toEqual(anError('locked'))
      const warnings: string[] = []
      const second = await take(open(), { id: 'second', succeeds: ['first'], confirm }, (message) =>
        warnings.push(message),
      )
      expect(warnings).toEqual([])
      // The former process still runs.
      for (const change of [
        () => first.store.publish('_state/sealed/0', 'credentials/part-0'),
        () => first.store.replace('_manifest.json', ['late']),
      ])
        await expect(change()).rejects.toEqual(anError('locked'))
      expect(await textOf(second.store, '_state/log/1')).toBe('counts')
      expect(await textOf(second.store, '_state/sealed/0')).toBe('a shard')
      expect(await textOf(open(), '_manifest.json')).toBeNull()
      await first.release()
      // The same hold again, in another worker.
      const third = await take(open(), { id: 'second', succeeds: [], confirm })
      await expect(second.store.replace('_manifest.json', ['late'])).rejects.toEqual(anError('locked'))
      await second.release()
      await third.release()
    })

    it('stays with its holder when the claim of the successor is no longer valid', async () => {
      const { open } = await make()
      const confirm = async (): Promise<void> => {
        throw new ExportError({ kind: 'interrupted', what: 'given to another', where: '', next: '' })
      }
      // The lock is free, so the claim is not checked.
      const holder = await take(open(), { id: 'the job', succeeds: [], confirm })
      await expect(take(open(), { id: 'the job', succeeds: [], confirm })).rejects.toEqual(
        anError('interrupted'),
      )
      await holder.store.replace('_manifest.json', ['its own'])
      expect(await textOf(open(), '_manifest.json')).toBe('its own')
      await holder.release()
      expect(await ownersIn(open())).toEqual([])
    })
  })
}

/** What owners leave while they are owners. */
async function ownersIn(store: Store): Promise<readonly string[]> {
  return (await store.list('_state')).filter((name) => /^(?:open|lock)\./.test(name))
}
