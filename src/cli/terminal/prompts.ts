import { ExportError } from '../../core/index.ts'
import type { Screen } from './screen.ts'

/**
 * Asks questions on the terminal.
 * @param unchanged the message after Ctrl-C
 * @returns null when the input, with Ctrl-D for one, ends before the last question
 * @throws ExportError `interrupted` on Ctrl-C
 */
export async function asking<Result>(
  screen: Screen,
  unchanged: string,
  work: (ask: (question: string) => Promise<string>) => Promise<Result>,
): Promise<Result | null> {
  const { createInterface } = await import('node:readline/promises')
  const reader = createInterface({ input: process.stdin, output: screen.stream })
  const abort = new AbortController()
  let interrupted = false
  reader.on('SIGINT', () => {
    interrupted = true
    abort.abort()
  })
  reader.on('close', () => abort.abort())
  try {
    return await work((question) => reader.question(question, { signal: abort.signal }))
  } catch (error) {
    if (!abort.signal.aborted) throw error
    screen.write('\n')
    if (interrupted)
      throw new ExportError({
        kind: 'interrupted',
        what: unchanged,
        where: '',
        next: 'Run it again any time.',
      })
    return null
  } finally {
    reader.close()
  }
}

/** What is about to be changed, and where. */
type Change = {
  /** As a sentence without its end: `prune removes data`. */
  readonly what: string
  readonly where: string
  /** The cost, in sentences. */
  readonly cost?: string
  readonly question: string
  /** What to do after a no. */
  readonly next: string
}

export function canAsk(screen: Screen): boolean {
  return process.stdin.isTTY && screen.stream.isTTY
}

/**
 * Asks whether data may be changed; only a clear yes is one.
 * @throws ExportError `config` if there is no terminal, or the answer is no; `interrupted` on Ctrl-C
 */
export async function requireYes(
  screen: Screen,
  { what, where, cost, question, next }: Change,
): Promise<void> {
  if (!canAsk(screen)) {
    const message = `${what}, and there is no terminal for the question`
    throw new ExportError({
      kind: 'config',
      // The place and a full stop follow.
      what: cost ? `${message}. ${cost.replace(/\.$/, '')}` : message,
      where,
      next: 'Add --yes to consent; nothing was changed.',
    })
  }
  const answer = await asking(screen, 'Nothing was changed', (ask) => ask(`${question} [y/N] `))
  if (/^\s*y(?:es)?\s*$/i.test(answer ?? '')) return
  throw new ExportError({ kind: 'config', what: 'Nothing was changed', where: '', next })
}
