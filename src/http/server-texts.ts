import { LEFT_OUT, oneLine, repeatsSecret } from '../core/index.ts'

const MAX_LENGTH = 300

/** Stands for texts of the service that a run must not quote. */
const NOT_QUOTED = '[left out: the run holds a query whose value must not be shown]'

/** Safe for a message: one line, truncated, none that repeats a secret. @param hidesTexts one remark for all of them */
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
