import { expect, it } from 'vitest'
import { accessTo, sandboxWith, spillway, workFolder, writePipeline } from './spillway.ts'
import { hasTerminals, onTerminal } from './terminal.ts'

const SMALL_PAGES = '  page_size: 2\n  concurrency: 1'
const isAnswered = (frame: string): boolean => frame.includes(', 999,999 left')
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminal escapes are what is looked for
const COLOUR = /\x1b\[[\d;]*m/

it.skipIf(!hasTerminals)(
  'tells earlier runs apart, counts a pause down, and leaves nothing behind',
  async () => {
    const sandbox = await sandboxWith({
      faults: [{ kind: 'status', status: 429, retryAfter: '3', requests: [5] }],
    })
    const folder = workFolder()
    const file = await writePipeline(folder, { extract: SMALL_PAGES })
    expect((await spillway(['run', file, '--max-requests', '3'], folder, accessTo(sandbox))).code).toBe(4)
    const env = accessTo(sandbox)
    const { code, frames, written } = await onTerminal(['run', file], { cwd: folder, env, columns: 80 })
    expect(code, written).toBe(0)
    expect(written).toMatch(COLOUR)
    const pauses = frames.map((frame) => /wants a pause: goes on in (\d) s/.exec(frame)?.[1])
    expect(new Set(pauses.filter((seconds) => seconds !== undefined)).size).toBeGreaterThan(1)
    const drawn = frames
      .findLast((frame) => frame.includes('wants a pause'))!
      .trimEnd()
      .split('\n')
    expect(drawn.slice(-3)).toEqual([
      expect.stringMatching(/^trial {2}╍*━+─+ {2}\d of 3 partitions {2}1 by earlier runs$/),
      expect.stringMatching(
        /^\d+ rows, \d+\/s {2}\d+ (requests, [\d,]+ searches|sent, [\d,]+) left {2}0:\d\d/,
      ),
      expect.stringMatching(/^the service answered 429 and wants a pause: goes on in \d s$/),
    ])
    // Lines that were drawn are gone in the end: nothing but the log and the summary is there.
    const end = frames.at(-1)!
    expect(end).toMatch(/^\[\d\d:\d\d:\d\d\] WARN: the service answered 429.*\ntrial: complete in/s)
    expect(end).not.toMatch(/[━─╍]|pace: /)
  },
)

it.skipIf(!hasTerminals)('in a narrow window wraps nothing, and Ctrl-C is told in between', async () => {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  // The second search waits for its turn.
  const service = '  requests_per_second: 0.01'
  const file = await writePipeline(folder, { service, extract: SMALL_PAGES })
  let typed = false
  const { code, frames, written } = await onTerminal(['run', file], {
    cwd: folder,
    env: { ...accessTo(sandbox), NO_COLOR: '1' },
    columns: 40,
    onFrame(frame, type) {
      if (typed || !isAnswered(frame)) return
      typed = true
      type('\x03')
    },
  })
  expect(code, written).toBe(130)
  expect(written).not.toMatch(COLOUR)
  const drawn = frames.find(isAnswered)!.split('\n')
  expect(drawn).toEqual([
    expect.stringMatching(/^trial {2}[━─]+ {2}/),
    expect.stringMatching(/^2 rows(, \d\/s)? {2}1 (request|sent), 999,999 left {2}0:\d\d$/),
    'pace: up to 0.01 requests a second, on…',
    '',
  ])
  expect(frames.find((frame) => frame.includes('Stopping: '))).toMatch(/^\nStopping: /)
  expect(frames.at(-1)).not.toMatch(/[━─╍]|pace: /)
})
