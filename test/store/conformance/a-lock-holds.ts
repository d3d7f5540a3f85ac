import { describe, expect, it } from 'vitest'
import { type Clock, type Store, systemClock } from '../../../src/core/index.ts'
import { type Lock, takeLock } from '../../../src/state/index.ts'
import { anError } from '../../disk/errors.ts'
import { add, type MakeWorld, textOf } from './world.ts'

/** Waits a twentieth of the time. */
const quick: Clock = { ...systemClock, sleep: (ms, stop) => systemClock.sleep(ms / 20, stop) }

function take(store: Store): Promise<Lock> {
  const stop = new AbortController().signal
  return takeLock(store, { clock: quick, stop, fresh: false, growing: async () => [], warn: () => {} })
}

export function aLockHolds(make: MakeWorld): void {
  describe('a lock', () => {
    it('lets in one at a time, each of whom finds what the one before left', async () => {
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
  })
}
