import { DeleteObjectCommand } from '@aws-sdk/client-s3'
import { describe, expect, it } from 'vitest'
import { type Clock, type Store, systemClock } from '../../src/core/index.ts'
import { takeLock } from '../../src/state/index.ts'
import type { Lock } from '../../src/state/lock/lock.ts'
import { anError } from '../disk/errors.ts'
import { eachInABucket } from '../s3/each-in-a-bucket.ts'
import { BUCKET } from '../support/bucket.ts'
import { random } from '../support/random.ts'
import { cases } from '../support/thorough.ts'

/** Polls often; heartbeats keep their interval. */
const quick: Clock = { ...systemClock, sleep: (ms, stop) => systemClock.sleep(ms > 500 ? ms : ms / 50, stop) }

function take(store: Store): Promise<Lock> {
  const stop = new AbortController().signal
  return takeLock(store, { clock: quick, stop, fresh: false, warn: () => {} })
}

/** @returns how many of them got the lock; the error of each of the others names the owner */
async function winnersOf(open: () => Store, runs: number): Promise<number> {
  const locks: Lock[] = []
  for (const result of await Promise.allSettled(Array.from({ length: runs }, () => take(open())))) {
    if (result.status === 'fulfilled') locks.push(result.value)
    else {
      expect(result.reason).toEqual(anError('locked'))
      expect(result.reason.message).toContain(`process ${process.pid}`)
    }
  }
  for (const lock of locks) await lock.release()
  return locks.length
}

describe('in a bucket', () => {
  const here = eachInABucket()

  it.each([2, 3, 5])('one of %i runs that see each other gets the lock', async (runs) => {
    let written = 0
    let letGo: () => void = () => {}
    const allThere = new Promise<void>((resolve) => {
      letGo = resolve
    })
    here.double.cues.before(
      { operation: 'PutObject', key: /_state\/lock\./, where: ({ headers }) => headers.has('if-none-match') },
      () => {
        if (++written === runs) setTimeout(letGo, 5)
      },
      { times: runs },
    )
    // No process reads lock files before all are written.
    const isLook = { operation: 'ListObjectsV2' } as const
    here.double.cues.before(isLook, () => allThere, { times: runs })
    expect(await winnersOf(here.open, runs)).toBe(1)
  })

  // Its marker is written again, to see whether the store honours conditions, and looked for if it does.
  it.each([
    ['PutObject', 1],
    ['HeadObject', 0],
  ] as const)('an owner whose marker another removes before a %s is told so', async (operation, skip) => {
    const Key = 'set/_state/open.0123456789ab'
    const remove = async (): Promise<void> => {
      await here.client().send(new DeleteObjectCommand({ Bucket: BUCKET, Key }))
    }
    here.double.cues.before({ operation, key: Key }, remove, { skip })
    const begun = here
      .open()
      .own('0123456789ab')
      .then((own) => own.requireLock())
    await expect(begun).rejects.toEqual(anError('locked'))
  })

  it('one run gets the lock whatever the order and the duration of the requests', async () => {
    for (let seed = 1; seed <= cases(6, 1); seed++) {
      const next = random(seed)
      const pause = () => new Promise<void>((resolve) => setTimeout(resolve, next() * 25))
      here.double.cues.clear()
      here.double.cues.before({}, pause, { times: 10_000 })
      const open = () => here.open({ prefix: `set-${seed}` })
      expect(await winnersOf(open, 2 + (seed % 3)), `seed ${seed}`).toBe(1)
    }
  })
})
