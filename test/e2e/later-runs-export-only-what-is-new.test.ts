import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const parts = (from: string, until: string, every?: string) => ({
  extract: { domains: DOMAINS, windows: { from, until, every }, page_size: 50 },
})

/** Each begins earlier, ends later or has other windows than those before. All cases: `test/pipeline/plan`. */
const CHANGES = [
  ['2024-01-10', '2024-04-20', '12d'],
  ['2023-11-05', '2024-09-09T09:09:09Z', 'month'],
  ['2024-01-01', '2025-01-01'],
] as const

it('other ranges and windows add the missing rows, and no row twice', async () => {
  const here = await newWorkspace(parts('2024-01-01', '2024-03-15', 'month'))
  expect((await here.run()).code).toBe(0)
  for (const [from, until, every] of CHANGES) {
    await here.write(parts(from, until, every))
    const { summary } = await exits(0, here.run())
    expect(summary.requests).toBeGreaterThan(0)
  }
  await here.expectRows(DOMAINS)
})
