import { expect, it } from 'vitest'
import type * as z from 'zod'
import { ENTRY_SCHEMAS } from '../../src/state/journal-entry.ts'
import { textOf } from './page.ts'

it('the page of the state names every kind of entry, with all its fields', () => {
  const rows = [...textOf('docs/state.md').matchAll(/^\| `(\w+)` \| (.*?) \|/gm)]
  const told = new Map(
    rows.map(([, kind, fields]) => [kind!, [...fields!.matchAll(/`(\w+)`/g)].map(([, name]) => name!)]),
  )
  for (const [kind, schema] of Object.entries(ENTRY_SCHEMAS)) {
    const fields = Object.keys((schema as z.ZodObject).shape).filter((name) => name !== 'kind')
    expect([kind, told.get(kind)?.toSorted()]).toEqual([kind, fields.sort()])
  }
})
