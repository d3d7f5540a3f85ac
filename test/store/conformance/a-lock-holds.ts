import { describe, expect, it } from 'vitest'
import { type Clock, ExportError, type Store, systemClock } from '../../../src/core/index.ts'
import { type Hold, takeLock } from '../../../src/state/index.ts'
import type { Lock } from '../../../src/state/lock/lock.ts'
import { anError } from '../../disk/errors.ts'
import { add, type MakeWorld, textOf } from './world.ts'

/** Waits a twentieth of the time. */
const quick: Clock = { ...systemClock, sleep: (ms, stop) => systemClock.sleep(ms / 20, stop) }

function take(store: Store, hold?: Hold, warn: (message: string) => void = () => {}): Promise<Lock> {
  const stop = new AbortController().signal
  return takeLock(store, {
    clock: quick,
    stop,
    fresh: false,
    hold,
    growing: async () => ['_state/log'],
    warn,
  })
}

export function aLockHolds(make: MakeWorld): void {
  describe('a lock', () => {
    it('admits one holder at a time, each of which finds the state that the one before left', async () => {
      const { open } = await make()
      const first = await take(open())
      await expect(take(open())).rejects.toEqual(anError('locked'))
      const log = await first.store.openLog('_state/open/0.log', 0)
      await add(log, 'rows')
      await log.close()
      await first.release()
      const second = await take(open())
      await expect(take(open())).rejects.toEqual(anError('locked'))
      expect(await textOf(second.store, '_state/open/0.log')).toBe('rows')
      await second.store.remove('_state/open/0.log')
      await second.release()
      expect(await open().list('_state')).toEqual([])
    })

    it('passes at once to the named successor of its holder, which can change nothing from then on', async () => {
      const { open } = await make()
      const confirm = async (): Promise<void> => {}
      const first = await take(open(), { id: 'first', succeeds: [], confirm })
      const log = await first.store.openLog('_state/log', 0)
      await add(log, 'counts')
      await first.store.writeWhole('_state/open/0.part', ['a shard'])
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
      // The former process still runs: nobody reads its writes, or they are refused.
      const refused = (error: unknown): void => expect(error).toEqual(anError('locked'))
      await add(log, 'late').catch(refused)
      await log.close().catch(refused)
      expect(await textOf(second.store, '_state/log')).toBe('counts')
      await expect(first.store.publish('_state/open/0.part', 'credentials/part-0')).rejects.toEqual(
        anError('locked'),
      )
      await expect(first.store.writeWhole('_manifest.json', ['late'])).rejects.toEqual(anError('locked'))
      expect(await textOf(second.store, '_state/open/0.part')).toBe('a shard')
      expect(await textOf(open(), '_manifest.json')).toBeNull()
      // There is no lock left to release, which a bucket reports.
      await first.release().catch(refused)
      // The same hold again, in another worker.
      const third = await take(open(), { id: 'second', succeeds: [], confirm })
      await expect(second.store.writeWhole('_manifest.json', ['late'])).rejects.toEqual(anError('locked'))
      await second.release().catch(refused)
      await third.release()
    })

    it('stays with its holder when the claim of the successor is no longer valid', async () => {
      const { open } = await make()
      const confirm = async (): Promise<void> => {
        throw new ExportError('interrupted', 'given to another', '', '')
      }
      // The lock is free, so the claim is not checked.
      const holder = await take(open(), { id: 'the job', succeeds: [], confirm })
      await expect(take(open(), { id: 'the job', succeeds: [], confirm })).rejects.toEqual(
        anError('interrupted'),
      )
      await holder.store.writeWhole('_manifest.json', ['its own'])
      expect(await textOf(open(), '_manifest.json')).toBe('its own')
      await holder.release()
      expect(await open().list('_state')).toEqual([])
    })
  })
}
