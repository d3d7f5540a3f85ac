import { expect, it } from 'vitest'
import { openBelow } from '../support/open-files.ts'
import { newOwner, temporaryStore } from './temporary-store.ts'

const FILES = 150
/** More than a scratch keeps in memory. */
const LARGE = Buffer.alloc((1 << 20) + 1, 'a')

it.skipIf(process.platform !== 'linux')('of files that grow side by side one is open', async () => {
  const { store, root } = temporaryStore()
  const own = await store.own(newOwner())
  const scratches = Array.from({ length: FILES }, () => own.scratch())
  for (const scratch of scratches) await scratch.append(LARGE)
  expect(openBelow(root)).toHaveLength(1)
  for (const [i, scratch] of scratches.entries()) await scratch.append(Buffer.from(`-${i}`))
  await Promise.all(scratches.map((scratch, i) => scratch.create(`state/${i}`)))
  expect(openBelow(root)).toEqual([])
  for (let i = 0; i < FILES; i++) {
    const tail = Buffer.from((await store.read(`state/${i}`, LARGE.length))!).toString()
    expect(tail).toBe(`-${i}`)
  }
  await own.release()
})
