import { CreateBucketCommand, ListObjectsV2Command } from '@aws-sdk/client-s3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Store, systemClock } from '../../src/core/index.ts'
import { takeLock } from '../../src/state/lock/lock.ts'
import { refusal } from '../disk/errors.ts'
import { write } from '../disk/temporary-store.ts'
import { BUCKET } from '../support/bucket.ts'
import { THOROUGH } from '../support/thorough.ts'
import { eachInABucket } from './each-in-a-bucket.ts'
import { startSecondServer } from './second-server.ts'

async function hold(store: Store): Promise<void> {
  const stop = new AbortController().signal
  const lock = await takeLock(store, { clock: systemClock, stop, fresh: false, warn: () => {} })
  await lock.release()
}

describe.each([
  ['If-None-Match', ['if-none-match']],
  ['If-Match', ['if-match']],
])('a store that ignores %s', (header, ignoredConditions) => {
  const here = eachInABucket({ ignoredConditions })

  it('is rejected when a data set is created there, with nothing left behind', async () => {
    const error = await refusal(hold(here.open()))
    expect(error).toMatchObject({ kind: 'config', where: `s3://${BUCKET}/set` })
    expect(error.what).toContain(`ignores ${header}`)
    expect(here.double.objects(BUCKET).size).toBe(0)
  })
})

describe('a store without conditional writes', () => {
  const here = eachInABucket()

  it.runIf(THOROUGH)('is rejected also if it is another server that ignores both', async () => {
    const server = await startSecondServer(false)
    onTestFinished(() => server.close())
    const client = here.client(server.endpoint)
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }))
    const error = await refusal(hold(here.open({ endpoint: server.endpoint })))
    expect(error.what).toContain('ignores If-None-Match')
    const { KeyCount } = await client.send(new ListObjectsV2Command({ Bucket: BUCKET }))
    expect(KeyCount).toBe(0)
  })

  it('is rejected also if it does not know conditions', async () => {
    here.double.cues.fail(
      { operation: 'PutObject', where: ({ headers }) => headers.has('if-none-match') },
      { code: 'NotImplemented', times: 9 },
    )
    const error = await refusal(hold(here.open()))
    expect(error).toMatchObject({ kind: 'config' })
    expect(error.what).toContain('does not know If-None-Match')
    expect(here.double.objects(BUCKET).size).toBe(0)
  })

  it('is not looked for again once a data set exists', async () => {
    const store = here.open()
    const puts = async (): Promise<number> => {
      const before = here.double.requests({ operation: 'PutObject' }).length
      await hold(store)
      return here.double.requests({ operation: 'PutObject' }).length - before
    }
    const first = await puts()
    await write(store, '_state/checkpoint.jsonl', '{}')
    expect(await puts()).toBe(first - 2)
  })
})
