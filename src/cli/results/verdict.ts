import { leftOutText } from '../../data-set/index.ts'
import type { TimeRange, Verdict } from '../../state/index.ts'
import type { Colour, Style } from '../terminal/screen.ts'
import { counted, plainLine } from '../terminal/text.ts'

export const VERDICT_COLOURS: Readonly<Record<Verdict['state'], Colour>> = {
  complete: 'green',
  incomplete: 'yellow',
  stopped: 'red',
  damaged: 'red',
}

/** `complete: all 3 partitions, but 2 items were left out (…)`: one line without its full stop. */
export function headlineText({ state, headline, leftOut }: Verdict, style: Style): string {
  return `${style(VERDICT_COLOURS[state], plainLine(headline))}${plainLine(leftOutText(leftOut))}`
}

/** Why it is so, and what to do. */
export function* reasonLines({ why, next }: Pick<Verdict, 'why' | 'next'>): Generator<string> {
  for (const text of [why, next]) if (text !== '') yield `  ${plainLine(text)}`
}

/** At the end of a command. */
export function* verdictLines(verdict: Verdict, style: Style): Generator<string> {
  yield `The export is ${headlineText(verdict, style)}.`
  yield* reasonLines(verdict)
}

export function* coverLines({ covers, waiting, outside }: Verdict): Generator<string> {
  const [first] = waiting
  if (covers !== null) yield `covers ${rangeText(covers)}`
  if (first !== undefined) {
    const [wait, their] = waiting.length === 1 ? ['waits', 'its'] : ['wait', 'their']
    yield `${counted(waiting.length, 'window')} ${wait} for ${their} end and extract.lag: ${rangeText({ from: first.from, until: waiting.at(-1)!.until })}`
  }
  if (outside.partitions > 0)
    yield `outside of what the file plans: ${counted(outside.rows, 'row')} in ${counted(outside.partitions, 'partition')}`
}

function rangeText({ from, until }: TimeRange): string {
  return `${shortInstant(from)} until ${shortInstant(until)}`
}

export function shortInstant(instant: string): string {
  return instant.replace('T00:00:00Z', '')
}
