import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { some } from '../support/thorough.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const FILE = {
  extract: { domains: DOMAINS, windows: { from: '2024-01-01', until: '2024-03-01', every: 'month' } },
}

function succeeded({ output }: Workspace): boolean {
  return existsSync(join(output, '_SUCCESS'))
}

const NARROWED = [
  ['--domain', 'scatterholt.com'],
  ['--until', '2024-02-01'],
  ['--from', '2024-02-01'],
]

it.each(some(NARROWED, 1).map((flags) => ({ flags })))(
  'a run with $flags leaves no _SUCCESS while the file plans more',
  async ({ flags }) => {
    const here = await newWorkspace(FILE)
    expect((await here.run(...flags)).code).toBe(0)
    expect(succeeded(here)).toBe(false)
    expect((await here.run()).code).toBe(0)
    expect(succeeded(here)).toBe(true)
    // Nothing is missing any more, and a narrower run does not change that.
    expect((await here.run(...flags)).code).toBe(0)
    expect(succeeded(here)).toBe(true)
  },
)

const LOADS = [
  { where: 'folders of their own', load: {} },
  { where: 'one folder', load: { partition_by: 'none' } },
]

it.each(some(LOADS, 1))(
  'a stop at the budget and then a narrower run leave no _SUCCESS, with $where',
  async ({ load }) => {
    const here = await newWorkspace({ ...FILE, load })
    expect((await here.run('--max-requests', '1')).code).toBe(4)
    expect((await here.run('--domain', 'scatterholt.com')).code).toBe(0)
    expect(succeeded(here)).toBe(false)
    expect((await here.run()).code).toBe(0)
    expect(succeeded(here)).toBe(true)
  },
)

it('a narrower run that completes the file writes _SUCCESS', async () => {
  const here = await newWorkspace(FILE)
  for (const [index, domain] of DOMAINS.entries()) {
    expect((await here.run('--domain', domain)).code).toBe(0)
    expect(succeeded(here)).toBe(index === DOMAINS.length - 1)
  }
})

it('a file with more queries than before has no _SUCCESS, even if a narrower run finds its part done', async () => {
  const here = await newWorkspace({ extract: { ...FILE.extract, domains: ['scatterholt.com'] } })
  expect((await here.run()).code).toBe(0)
  await here.write(FILE)
  expect((await here.run('--domain', 'scatterholt.com')).summary).toMatchObject({ requests: 0 })
  expect(succeeded(here)).toBe(false)
})

it('a run with a domain that the file does not name sends nothing and writes nothing', async () => {
  const here = await newWorkspace(FILE)
  const { code, stderr } = await here.call('run', '--domain', 'scaterholt.com')
  expect(code).toBe(2)
  expect(stderr).toContain('did you mean `scatterholt.com`?')
  expect(here.sandbox.requests).toEqual([])
  expect(existsSync(here.output)).toBe(false)
})
