import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const FILE = {
  extract: { domains: DOMAINS, windows: { from: '2024-01-01', until: '2024-03-01', every: 'month' } },
}

function succeeded({ output }: Workspace): boolean {
  return existsSync(join(output, '_SUCCESS'))
}

type Run = readonly [flags: string, code: number, isWhole: boolean]
const ALL: Run = ['', 0, true]
const narrowed = (flags: string) => [[flags, 0, false], ALL, [flags, 0, true]] as const
const BUDGET = [['--max-requests 1', 4, false], ['--domain scatterholt.com', 0, false], ALL] as const

const RUNS: readonly { readonly runs: readonly Run[]; readonly load?: PipelineParts['load'] }[] = [
  { runs: BUDGET },
  // Nothing is missing any more, and a narrower run does not change that.
  { runs: narrowed('--domain scatterholt.com') },
  {
    runs: [
      ['--domain scatterholt.com', 0, false],
      ['--domain quillmere.net', 0, true],
    ],
  },
  { runs: narrowed('--until 2024-02-01') },
  { runs: narrowed('--from 2024-02-01') },
  { runs: BUDGET, load: { partition_by: 'none' } },
]

it.each(some(RUNS, 3))('_SUCCESS stands once nothing of the file is missing: $runs $load', async (given) => {
  const here = await newWorkspace({ ...FILE, ...(given.load && { load: given.load }) })
  for (const [flags, code, isWhole] of given.runs) {
    await exits(code, here.run(...flags.split(' ').filter(Boolean)))
    expect([flags, succeeded(here)]).toEqual([flags, isWhole])
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
  await exits(2, here.call('run', '--domain', 'scaterholt.com'), 'did you mean `scatterholt.com`?')
  expect(here.sandbox.requests).toEqual([])
  expect(existsSync(here.output)).toBe(false)
})
