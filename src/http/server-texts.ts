import { LEFT_OUT, oneLine, repeatsSecret } from '../core/index.ts'

const MAX_LENGTH = 300

/** Stands for texts of the service that a run must not quote. */
const NOT_QUOTED = '[left out: the run holds a query whose value must not be shown]'

/**
 * The service's strings, but for empty ones, made safe for a message: each on one line, without control characters, and
 * truncated. A string that repeats any secret known to this process, of this request or another, is left out.
 * @param hidesTexts as in `ServiceDeps`: one remark stands for all of them
 */
export function serverTexts(texts: readonly string[], hidesTexts: boolean): readonly string[] {
  const given = texts.filter((text) => text !== '')
  if (hidesTexts) return given.length === 0 ? [] : [NOT_QUOTED]
  return given
    .map((text) => (repeatsSecret(text) ? LEFT_OUT : cut(oneLine(text))))
    .filter((text) => text !== '')
}

function cut(line: string): string {
  const characters = [...line]
  return characters.length <= MAX_LENGTH ? line : `${characters.slice(0, MAX_LENGTH).join('')}…`
}
