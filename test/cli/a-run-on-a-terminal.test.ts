import { expect, it } from 'vitest'
import { PIPELINE } from '../support/workspace.ts'
import { hasTerminals, onTerminal } from './terminal.ts'
import { ONE_SLOT, trial } from './trial.ts'

const hasResponse = (screen: string): boolean => screen.includes('2 rows')
const COLOUR = /\x1b\[[\d;]*m/

it.skipIf(!hasTerminals)(
  'tells earlier runs apart, counts a pause down, and leaves no progress behind',
  async () => {
    const here = await trial(
      { extract: ONE_SLOT },
      { faults: [{ kind: 'status', status: 429, retryAfter: '5', requests: [5] }] },
    )
    expect((await here.call('run', '--max-requests', '3')).code).toBe(4)
    const { folder: cwd, env } = here
    const { code, screens, written } = await onTerminal(['run', PIPELINE], { cwd, env, columns: 80 })
    expect(code, written).toBe(0)
    expect(written).toMatch(COLOUR)
    const pauses = screens.map((screen) => /paused by a 429 for (\d) s/.exec(screen)?.[1])
    expect(new Set(pauses.filter((seconds) => seconds !== undefined)).size).toBeGreaterThan(1)
    expect(screens.findLast((screen) => screen.includes('paused by a 429'))!.trimEnd()).toMatch(
      /^trial: \d of 3 partitions, .*paused by a 429 for \d s/m,
    )
    // The line of progress is erased at the end: only the log and the summary are left.
    const end = screens.at(-1)!
    expect(end).toMatch(/^\[\d\d:\d\d:\d\d\] WARN: the service responded with 429.*\ntrial: complete in/s)
    expect(end).not.toContain('paused by a 429')
  },
)

it.skipIf(!hasTerminals)(
  'in a narrow window the line of progress is cut, and Ctrl-C is confirmed',
  async () => {
    // The second search waits for its permit.
    const { folder, env } = await trial({ service: { requests_per_second: 0.01 }, extract: ONE_SLOT })
    let typed = false
    const { code, screens, written } = await onTerminal(['run', PIPELINE], {
      cwd: folder,
      env: { ...env, NO_COLOR: '1' },
      columns: 40,
      onScreen(screen, type) {
        if (typed || !hasResponse(screen)) return
        typed = true
        type('\x03')
      },
    })
    expect(code, written).toBe(130)
    expect(written).not.toMatch(COLOUR)
    const drawn = screens.find(hasResponse)!.split('\n')
    expect(drawn).toEqual([expect.stringMatching(/^trial: \d of 3 partitions, 2 rows.*…$/)])
    expect(drawn[0]!.length).toBeLessThan(40)
    expect(screens.find((screen) => screen.includes('Stopping after'))).toMatch(/^Stopping after /m)
    expect(screens.at(-1)).not.toContain('of 3 partitions,')
  },
)
