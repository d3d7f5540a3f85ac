import { expect, onTestFinished, test } from 'vitest'
import { readParquet } from '../support/read-shards.ts'
import { exits, runCli } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, PIPELINE } from '../support/workspace.ts'

const DAY_MS = 86_400_000

const FEEDS = [
  ['the tenant', null],
  ['an identifier', 1],
] as const

test.for(some(FEEDS, 1))(
  'the feed of %s has every row once, whatever page a run is killed at',
  async ([, id]) => {
    let day = 0
    const here = await newWorkspace(
      { extract: { resource: 'feed', page_size: 5, ...(id === null ? {} : { identifiers: [id] }) } },
      { now: () => Date.parse('2024-01-01') + day * DAY_MS, lateRate: 0.1, latencyMs: 15 },
    )
    for (const requests of some([5, 1, 2, 3, 7, 9, 12, 15], 1)) {
      day += 60
      const until = here.sandbox.requests.length + requests
      const onStart = (kill: (signal: NodeJS.Signals) => void): void => {
        const watch = setInterval(() => {
          if (here.sandbox.requests.length < until) return
          clearInterval(watch)
          kill('SIGKILL')
        }, 1)
        onTestFinished(() => clearInterval(watch))
      }
      await runCli({ args: ['run', PIPELINE], cwd: here.folder, env: here.env, onStart })
    }
    await exits(0, here.run())
    const found = (await readParquet(here.output)).map((row) => String(row.id)).sort()
    expect(found).toEqual([...here.sandbox.expectedFeed(id)].map((item) => String(item.id)).sort())
    expect((await here.cli('verify', PIPELINE, '--complete')).code).toBe(0)
  },
)
