import { expect, it } from 'vitest'
import { temporaryStore } from '../disk/temporary-store.ts'
import { openAs } from './lines.ts'
import { type MemoryStore, memoryStore } from './memory-store.ts'

/** Counts the reads of the log. */
function counted<Of extends Pick<MemoryStore, 'read'>>(store: Of) {
  const paths: string[] = []
  const { read } = store
  store.read = (path, ...range) => {
    if (path.startsWith('_state/log/')) paths.push(path)
    return read(path, ...range)
  }
  return paths
}

it('where each read of a file is a request, the last committed bytes are read from memory', async () => {
  const store = memoryStore()
  const log = await openAs(store)
  const reads = counted(store)
  const page = Buffer.alloc(12 << 20)
  const refs = []
  for (const fill of 'abc') {
    const [ref] = await log.commit([], [page.fill(fill)])
    refs.push(ref!)
  }
  // The memory of a page is used again.
  page.fill('#')
  for (const [i, ref] of [...refs.entries()].reverse())
    expect(Buffer.from((await log.read(ref))!).equals(Buffer.alloc(page.length, 'abc'[i]))).toBe(true)
  // 32 MB do not hold the first.
  expect(reads).toEqual([expect.stringMatching(/1$/)])
  await log.close()
})

it.each([
  ['where each read is a request, is not read again while there is room', memoryStore, 1],
  ['on a disk, is read again each time, as what it commits is', () => temporaryStore().store, 6],
])('what is read at the beginning of a run, %s', async (_, make, times) => {
  const store = make()
  const before = await openAs(await store.own('0123456789ab'))
  const own = await store.own('ba9876543210')
  const refs = await before.commit([], [Buffer.from('rows')])
  const log = await openAs(own)
  const reads = counted(own)
  const all = [...refs, ...(await log.commit([], [Buffer.from('rows')]))]
  for (const ref of [...all, ...all, ...all])
    expect(Buffer.from((await log.read(ref))!).toString()).toBe('rows')
  expect(reads).toHaveLength(times)
  await log.close()
})

it('no bytes, and those that lie at the same place, are read as what they are', async () => {
  const log = await openAs(memoryStore())
  const refs = await log.commit([], [Buffer.alloc(0), Buffer.from('ids')])
  const read = await Promise.all(refs.map(async (ref) => Buffer.from((await log.read(ref))!).toString()))
  expect(read).toEqual(['', 'ids'])
  await log.close()
})
