import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  appendQuarantine,
  cutQuarantine,
  type QuarantinedItem,
  quarantinePath,
} from '../../src/load/index.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore } from '../disk/temporary-store.ts'

const KEY = 'domain.acme.com/2024-01-01..2024-02-01'

function itemOf(page: number, index: number): QuarantinedItem {
  return {
    partition: KEY,
    page,
    index,
    id: index % 2 === 0 ? null : index,
    issues: [{ path: 'imported_at', message: 'is no timestamp' }],
    item: { hash: '[REDACTED]', text: 'two\nlines, ü' },
  }
}

describe('the quarantine of a partition', () => {
  it('is one JSON object per line, readable by its owner alone', async () => {
    const { store, root } = temporaryStore()
    const items = [itemOf(0, 3), itemOf(0, 4)]
    const end = await appendQuarantine(store, KEY, 0, items)
    const file = join(root, quarantinePath(KEY))
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toEqual(items)
    expect(statSync(file).size).toBe(end)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('is truncated to the end in the checkpoint, whatever a crash left after it', async () => {
    const { store, root } = temporaryStore()
    const file = join(root, quarantinePath(KEY))
    const step = fc.record({
      items: fc.integer({ min: 1, max: 3 }),
      lost: fc.boolean(),
      garbage: fc.string({ maxLength: 20 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
        let end = 0
        const kept: QuarantinedItem[] = []
        for (const [page, { items, lost, garbage }] of steps.entries()) {
          const more = Array.from({ length: items }, (_, index) => itemOf(page, index))
          const next = await appendQuarantine(store, KEY, end, more)
          // A crash before the journal has the page's entry.
          if (lost) writeFileSync(file, garbage, { flag: 'a' })
          else {
            end = next
            kept.push(...more)
          }
        }
        const last = itemOf(99, 0)
        await appendQuarantine(store, KEY, end, [last])
        const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
        expect(lines.map((line) => JSON.parse(line))).toEqual([...kept, last])
      }),
      { numRuns: 30 },
    )
  })

  it('loses items of pages that are not in the journal, once the partition is done', async () => {
    const { store, root } = temporaryStore()
    const file = join(root, quarantinePath(KEY))
    // Nothing to truncate: there is no file.
    await cutQuarantine(store, KEY, 0)
    expect(existsSync(file)).toBe(false)
    const end = await appendQuarantine(store, KEY, 0, [itemOf(0, 0)])
    const whole = readFileSync(file, 'utf8')
    await appendQuarantine(store, KEY, end, [itemOf(1, 0), itemOf(1, 1)])
    await cutQuarantine(store, KEY, end)
    expect(readFileSync(file, 'utf8')).toBe(whole)
    // Again, and to more than the file has: a user may have removed a part of it.
    await cutQuarantine(store, KEY, end)
    await cutQuarantine(store, KEY, end + 100)
    expect(readFileSync(file, 'utf8')).toBe(whole)
    await cutQuarantine(store, KEY, 0)
    expect(existsSync(file)).toBe(false)
  })

  it('is refused if it is shorter than the checkpoint says', async () => {
    const { store } = temporaryStore()
    const end = await appendQuarantine(store, KEY, 0, [itemOf(0, 0)])
    await store.writeWhole(quarantinePath(KEY), ['short'])
    await expect(appendQuarantine(store, KEY, end, [itemOf(1, 0)])).rejects.toEqual(
      anError('damaged', quarantinePath(KEY)),
    )
  })

  it('has a file name of its own that every file system accepts', () => {
    expect(quarantinePath(KEY)).toBe('_quarantine/domain.acme.com~2024-01-01..2024-02-01.jsonl')
    const long = fc.string({ unit: fc.constantFrom('a', '%2F', '.'), minLength: 60, maxLength: 200 })
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
