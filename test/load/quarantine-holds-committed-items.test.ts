import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { writeQuarantine } from '../../src/data-set/settle/quarantine-files.ts'
import { quarantinePath } from '../../src/load/index.ts'
import { anError } from '../disk/errors.ts'
import { newOwner, temporaryStore } from '../disk/temporary-store.ts'

const KEY = 'domain.acme.com/2024-01-01..2024-02-01'

function itemOf(page: number, index: number) {
  return {
    partition: KEY,
    page,
    index,
    id: index % 2 === 0 ? null : index,
    issues: [{ path: 'imported_at', message: 'is no timestamp', found: 'number' }],
    item: { hash: '[REDACTED]', text: 'two\nlines, ü' },
  }
}

async function opened() {
  const { store, root } = temporaryStore()
  const own = await store.own(newOwner())
  const file = join(root, quarantinePath(KEY))
  const itemsIn = (): unknown[] =>
    readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  const lineOf = (item: object) => Buffer.from(`${JSON.stringify(item)}\n`)
  const write = (end: number, ...items: readonly object[]) =>
    writeQuarantine(own, KEY, end, items.map(lineOf))
  return { own, file, itemsIn, write }
}

describe('the quarantine of a partition', () => {
  it('has its committed items, whatever a crash left after them', async () => {
    const { file, itemsIn, write } = await opened()
    const step = fc.record({
      items: fc.integer({ min: 1, max: 3 }),
      lost: fc.boolean(),
      garbage: fc.string({ maxLength: 20 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
        let end = 0
        const kept: object[] = []
        for (const [page, { items, lost, garbage }] of steps.entries()) {
          const more = Array.from({ length: items }, (_, index) => itemOf(page, index))
          const next = await write(end, ...more)
          // A crash before the end is committed.
          if (lost) writeFileSync(file, garbage, { flag: 'a' })
          else {
            end = next
            kept.push(...more)
          }
        }
        const last = itemOf(99, 0)
        await write(end, last)
        expect(itemsIn()).toEqual([...kept, last])
      }),
      { numRuns: 30 },
    )
  })

  it('loses items of pages that are not committed, once the partition is done', async () => {
    const { own, file, itemsIn, write } = await opened()
    // There is no file.
    await write(0)
    expect(await own.size(quarantinePath(KEY))).toBeNull()
    const end = await write(0, itemOf(0, 0))
    await write(end, itemOf(1, 0), itemOf(1, 1))
    await write(end)
    expect(itemsIn()).toEqual([itemOf(0, 0)])
    // Again, and to more than the file has: a user may have removed a part of it.
    const { ino } = statSync(file)
    await write(end)
    await write(end + 100)
    expect(itemsIn()).toEqual([itemOf(0, 0)])
    expect(statSync(file).ino).toBe(ino)
    await write(0)
    expect(await own.size(quarantinePath(KEY))).toBeNull()
  })

  it('begins anew where a user has moved it away, and is refused where it has lost committed items', async () => {
    const { own, file, itemsIn, write } = await opened()
    const end = await write(0, itemOf(0, 0))
    await own.replace(quarantinePath(KEY), ['short'])
    await expect(write(end, itemOf(1, 0))).rejects.toEqual(anError('damaged', quarantinePath(KEY)))
    expect(readFileSync(file, 'utf8')).toBe('short')
    await own.remove(quarantinePath(KEY))
    expect(await write(end, itemOf(1, 0))).toBe(statSync(file).size)
    expect(itemsIn()).toEqual([itemOf(1, 0)])
  })

  it('has a file name of its own that every file system accepts', () => {
    expect(quarantinePath(KEY)).toBe('_quarantine/domain.acme.com~2024-01-01..2024-02-01.jsonl')
    const unit = fc.constantFrom('a', '%2F', '.')
    const long = fc.string({ unit, minLength: 60, maxLength: 200, size: 'max' })
    fc.assert(
      fc.property(long, long, (one, other) => {
        const [path, otherPath] = [one, other].map((name) => quarantinePath(`keyword.${name}/all`))
        expect(path?.length).toBeLessThanOrEqual('_quarantine/'.length + 255)
        expect(path?.slice('_quarantine/'.length)).not.toContain('/')
        expect(path === otherPath).toBe(one === other)
      }),
    )
  })
})
