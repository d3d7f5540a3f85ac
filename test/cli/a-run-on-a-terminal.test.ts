import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { accessTo, sandboxWith, trial, writePipeline } from './spillway.ts'
import { hasTerminals, onTerminal } from './terminal.ts'

const SMALL_PAGES = '  page_size: 2\n  concurrency: 1'
const hasResponse = (screen: string): boolean => screen.includes('2 rows')
// biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for terminal escapes
const COLOUR = /\x1b\[[\d;]*m/

it.skipIf(!hasTerminals)(
  'tells earlier runs apart, counts a pause down, and leaves no progress lines behind',
  async () => {
    const { folder, file, env, call } = await trial(
      { extract: SMALL_PAGES },
      {
        faults: [{ kind: 'status', status: 429, retryAfter: '3', requests: [5] }],
      },
    )
    expect((await call('run', file, '--max-requests', '3')).code).toBe(4)
    const { code, screens, written } = await onTerminal(['run', file], { cwd: folder, env, columns: 80 })
    expect(code, written).toBe(0)
    expect(written).toMatch(COLOUR)
    const pauses = screens.map((screen) => /requests go on in (\d) s/.exec(screen)?.[1])
    expect(new Set(pauses.filter((seconds) => seconds !== undefined)).size).toBeGreaterThan(1)
    const drawn = screens
      .findLast((screen) => screen.includes('requests go on in'))!
      .trimEnd()
      .split('\n')
    expect(drawn.slice(-3)).toEqual([
      expect.stringMatching(/^trial {2}╍*━+─+ {2}\d of 3 partitions {2}1 by earlier runs$/),
      expect.stringMatching(/^\d+ rows, \d+\/s {2}\d+ requests {2}[\d,]+ searches left {2}0:\d\d/),
      expect.stringMatching(/^the service responded with 429; requests go on in \d s$/),
    ])
    // The progress lines are erased at the end: only the log and the summary are left.
    const end = screens.at(-1)!
    expect(end).toMatch(/^\[\d\d:\d\d:\d\d\] WARN: the service responded with 429.*\ntrial: complete in/s)
    expect(end).not.toMatch(/[━─╍]|pace: /)
  },
)

it.skipIf(!hasTerminals)('in a narrow window no line wraps, and Ctrl-C is confirmed in between', async () => {
  const sandbox = await sandboxWith()
  const folder = scratchFolder()
  // The second search waits for its permit.
  const service = '  requests_per_second: 0.01'
  const file = await writePipeline(folder, { service, extract: SMALL_PAGES })
  let typed = false
  const { code, screens, written } = await onTerminal(['run', file], {
    cwd: folder,
    env: { ...accessTo(sandbox), NO_COLOR: '1' },
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
  expect(drawn).toEqual([
    expect.stringMatching(/^trial {2}[━─]+ {2}\d of 3 partitions$/),
    expect.stringMatching(/^2 rows(, \d\/s)? {2}1 request {2}0:\d\d$/),
    'pace: up to 0.01 requests a second, on…',
    '',
  ])
  expect(screens.find((screen) => screen.includes('Stopping after'))).toMatch(/^\nStopping after /)
  expect(screens.at(-1)).not.toMatch(/[━─╍]|pace: /)
})
