import { Writable } from 'node:stream'
import { expect, it, onTestFinished, vi } from 'vitest'
import { Screen } from '../../src/cli/terminal/screen.ts'

function screenOn(stream: object) {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  let text = ''
  const written = new Writable({
    write: (chunk, _encoding, done) => {
      text += chunk
      done()
    },
  })
  const screen = new Screen(Object.assign(written, stream) as unknown as NodeJS.WriteStream, {})
  return { screen, text: () => text }
}

it('without a terminal, a command that is silent for half a minute says how far it is', () => {
  const { screen, text } = screenOn({})
  const tick = (ms: number) => {
    vi.advanceTimersByTime(ms)
    screen.breakSilence(28_000, () => 'verify: at work')
  }
  tick(27_000)
  expect(text()).toBe('')
  tick(1_000)
  expect(text()).toBe('verify: at work\n')
  screen.showNowAndThen('shard 3: a.parquet')
  tick(27_000)
  expect(text()).toBe('verify: at work\n')
  tick(1_000)
  expect(text()).toBe('verify: at work\nshard 3: a.parquet\n')
})

it('what a shell has written while the process was stopped is not drawn over', () => {
  const { screen, text } = screenOn({ isTTY: true, columns: 80, rows: 24 })
  screen.show('one\ntwo')
  const before = text()
  screen.drawBelow()
  screen.show('one\ntwo')
  // No cursor moves up.
  expect(text().slice(before.length)).toBe('one\x1b[K\ntwo\x1b[K\n\x1b[J')
})
