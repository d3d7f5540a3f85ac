import { expect, it } from 'vitest'
import { bucketStore } from '../../src/bucket/index.ts'
import { s3Driver } from '../../src/s3/index.ts'
import { eachInABucket } from './each-in-a-bucket.ts'

const here = eachInABucket()

it('a shard that the store cannot copy is sent again, also if the run ends before its source is removed', async () => {
  const driver = { ...s3Driver(here.location()), copy: async () => false }
  const [from, to] = ['_state/sealed/0.0123456789abcdef', 'credentials/part-00000.csv']
  let isOver = false
  const remove: typeof driver.remove = async (name) => {
    if (isOver) throw new Error('the process ends')
    await driver.remove(name)
  }
  const store = await bucketStore({ ...driver, remove }).own('aaaaaaaaaaaa')
  await store.create(from, ['rows'])
  isOver = true
  await expect(store.publish(from, to)).rejects.toThrow('the process ends')
  const next = await bucketStore(driver).own('bbbbbbbbbbbb')
  await next.takeOver(['aaaaaaaaaaaa'])
  await next.publish(from, to)
  expect(Buffer.from((await next.read(to))!).toString()).toBe('rows')
  expect(await next.size(from)).toBe(null)
})
