import { asking } from './ask.ts'
import type { Screen } from './screen.ts'

/**
 * Asks a question on the terminal; only a clear yes is one.
 * @throws ExportError `interrupted` on Ctrl-C
 */
export async function confirm(question: string, screen: Screen): Promise<boolean> {
  const answer = await asking(screen, 'Nothing was changed', (ask) => ask(`${question} [y/N] `))
  return /^\s*y(?:es)?\s*$/i.test(answer ?? '')
}
