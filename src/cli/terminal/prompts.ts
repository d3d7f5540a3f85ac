import { ExportError } from '../../core/index.ts'
import type { Screen } from './screen.ts'

type Change = {
  /** As a sentence without its end: `prune removes data`. */
  readonly what: string
  readonly where: string
  readonly cost?: string
  readonly question: string
  readonly next: string
}

export function canAsk(screen: Screen): boolean {
  return process.stdin.isTTY && screen.stream.isTTY
}

/** Only a clear yes is one. @throws ExportError `config` for a no, or no terminal; `interrupted`: Ctrl-C */
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
  if (/^\s*y(?:es)?\s*$/i.test(await answerTo(question, screen))) return
  throw new ExportError({ kind: 'config', what: UNCHANGED, where: '', next })
}

const UNCHANGED = 'Nothing was changed'

/** @returns the answer; empty when the input, with Ctrl-D for one, ends before @throws ExportError `interrupted` on Ctrl-C */
async function answerTo(question: string, screen: Screen): Promise<string> {
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
    return await reader.question(`${question} [y/N] `, { signal: abort.signal })
  } catch (error) {
    if (!abort.signal.aborted) throw error
    screen.write('\n')
    if (!interrupted) return ''
    throw new ExportError({ kind: 'interrupted', what: UNCHANGED, where: '', next: 'Run it again any time.' })
  } finally {
    reader.close()
  }
}
