import { expect, it } from 'vitest'
import { statusShape } from '../support/json-shapes.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-01', until: '2024-03-01' }
const parts = (domains: readonly string[], load = {}) => ({
  extract: { domains, windows: { ...RANGE, every: 'month' }, page_size: 5 },
  load,
})

const retired = async (here: Workspace) =>
  statusShape.parse((await exits(0, here.json('status'))).value).retired

const LOADS = [
  { where: 'folders of their own', load: {} },
  { where: 'one folder', load: { partition_by: 'none' } },
]

it.each(some(LOADS, 1))(
  'a domain removed from the file keeps its rows in $where, is listed as retired and stops nothing',
  async ({ load }) => {
    const here = await newWorkspace(parts(DOMAINS, load))
    // One window of the removed domain is unfinished.
    expect((await here.run('--domain', 'quillmere.net', '--max-requests', '2')).code).toBe(4)
    await here.write(parts(['scatterholt.com'], load))
    await exits(0, here.run())
    const [gone] = await retired(here)
    expect(gone).toMatchObject({ query: 'domain.quillmere.net' })
    expect(gone?.rows).toBeGreaterThan(0)
    expect((await here.manifest()).retired).toEqual([gone])
    const printed = await here.call('status')
    expect(printed.stdout).toContain('retired, kept: domain.quillmere.net')
    expect((await here.json('verify')).code).toBe(0)

    // When it is added again, it resumes where it stopped.
    await here.write(parts(DOMAINS, load))
    expect((await here.run()).code).toBe(0)
    expect(await retired(here)).toEqual([])
    expect((await here.manifest()).retired).toEqual([])
    await here.expectRows(DOMAINS, RANGE)
  },
)
