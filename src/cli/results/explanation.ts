import type { ExplainedSecret, ExplainedSetting, Explanation, Origin } from '../../config/index.ts'
import { plainLine } from '../terminal/plain-text.ts'
import { count, counted } from '../terminal/quantities.ts'

// The beginning of a list shows what it is about; all of it is for --json.
const MAX_ITEMS = 5
const MAX_VALUE = 60

/**
 * A line for each setting and secret: what holds, and where it comes from.
 * @param all with the settings that have their default
 */
export function explanationLines(
  { settings, secrets }: Explanation,
  { all }: { readonly all: boolean },
): readonly string[] {
  const shown = all ? settings : settings.filter(({ from }) => from.by !== 'default')
  const hidden = settings.length - shown.length
  const rows = [
    ...shown.map(({ key, value, from }) => [key, valueText(value), originText(from)] as const),
    ...secrets.map((secret) => [secret.variable, ...secretText(secret)] as const),
  ]
  const keyWidth = Math.max(...rows.map(([key]) => key.length))
  const valueWidth = Math.max(...rows.map(([, value]) => Math.min(value.length, MAX_VALUE)))
  return [
    ...rows.map(
      ([key, value, from]) => `${key.padEnd(keyWidth)}  ${value.padEnd(valueWidth)}  ${plainLine(from)}`,
    ),
    ...(hidden > 0 ? [`${counted(hidden, 'setting')} more at their defaults; --all shows them`] : []),
  ]
}

/** The same for scripts. */
export function explanationJson({ settings, secrets }: Explanation) {
  return {
    settings: settings.map(({ key, value, from }: ExplainedSetting) => ({ key, value, from })),
    secrets: secrets.map(({ variable, isSet, fileVariable }) => ({
      variable,
      set: isSet,
      file_variable: fileVariable,
    })),
  }
}

function valueText(value: unknown): string {
  if (!Array.isArray(value))
    return shortened(typeof value === 'object' ? JSON.stringify(value) : String(value))
  const items = value.slice(0, MAX_ITEMS).map(String)
  const more = value.length - items.length
  return shortened(`[${items.join(', ')}${more > 0 ? `, … ${count(more)} more` : ''}]`)
}

function shortened(text: string): string {
  const line = plainLine(text)
  return line.length > MAX_VALUE ? `${line.slice(0, MAX_VALUE - 1)}…` : line
}

function originText(from: Origin): string {
  switch (from.by) {
    case 'default':
      return 'default'
    case 'flag':
      return from.flag
    case 'file': {
      const at = `${from.file}:${from.line}:${from.column}`
      const made = from.variables.map((name) => `\${${name}}`).join(', ')
      return `${made === '' ? '' : `${made} in `}${at}${from.extended ? ' (extended)' : ''}`
    }
  }
}

function secretText({ variable, isSet, fileVariable }: ExplainedSecret): readonly [string, string] {
  if (!isSet) return ['not set', `neither ${variable} nor ${variable}_FILE`]
  return ['set', fileVariable === null ? 'environment' : `the file that ${fileVariable} names`]
}
