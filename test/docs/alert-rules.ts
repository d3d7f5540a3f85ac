import { parse } from 'yaml'
import { z } from 'zod'
import { textOf } from './page.ts'

const text = z.string()

/** The fields of a rules file that it uses. Source: Prometheus, alerting rules (2.42). */
const rulesFile = z.strictObject({
  groups: z.array(
    z.strictObject({
      name: text,
      rules: z.array(
        z.strictObject({
          ...{ alert: text, expr: text },
          labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
          annotations: z.strictObject({ summary: text, action: text }),
        }),
      ),
    }),
  ),
})

export const RULES = rulesFile
  .parse(parse(textOf('docs/schedules/alerts.yaml')))
  .groups.flatMap(({ rules }) => rules)

/** The alerts that fire on a metrics file, read at a time. @throws when a rule names what the file does not have */
export function firing(metrics: string, atMs = Date.now()): readonly string[] {
  const samples = samplesOf(metrics)
  return RULES.flatMap(({ alert, expr }) =>
    (evaluated(expr, samples, atMs / 1000) as Vector).size > 0 ? [alert] : [],
  )
}

/** What the rules name and a metrics file does not have. */
export function unknownTo(metrics: string): readonly string[] {
  const samples = samplesOf(metrics)
  const selectors = RULES.flatMap(({ expr }) => expr.match(/spillway_\w+(?:\{.*?\})?/g) ?? [])
  const labels = RULES.flatMap(({ annotations }) =>
    Array.from(annotations.summary.matchAll(/\$labels\.(\w+)/g), ([, label]) => label!),
  )
  return [
    ...selectors.filter((selector) => (evaluated(selector, samples, 0) as Vector).size === 0),
    ...labels.filter((label) => samples.some((sample) => sample.labels[label] === undefined)),
  ]
}

type Sample = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

function samplesOf(metrics: string): readonly Sample[] {
  const lines = metrics.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    const [, name = '', inner = '', value] = /^(\w+)\{(.*)\} (\S+)$/.exec(line)!
    const labels = Array.from(inner.matchAll(/(\w+)="([^"]*)"/g), ([, key, of]) => [key, of])
    return { name, labels: Object.fromEntries(labels), value: Number(value) }
  })
}

/** Values by their labels, without the name of the metric. */
type Vector = ReadonlyMap<string, number>
type Value = number | Vector

const LEVELS: readonly Readonly<Record<string, (a: number, b: number) => number | boolean>>[] = [
  { or: () => true },
  { and: () => true },
  { '==': (a, b) => a === b, '>': (a, b) => a > b, '<': (a, b) => a < b },
  { '-': (a, b) => a - b },
  { '*': (a, b) => a * b },
]

/** Of PromQL what the rules use: selectors, time(), arithmetics, comparisons, and, or. @throws at all else */
function evaluated(expression: string, samples: readonly Sample[], seconds: number): Value {
  const tokens = expression.match(/\w+(?:\{.*?\}|\(\))?|==|\S/g) ?? []
  const value = chain(0)
  if (tokens.length > 0) throw new Error(`${expression}: what is ${tokens[0]}?`)
  return value

  function chain(level: number): Value {
    const operators = LEVELS[level]
    if (operators === undefined) return atom(tokens.shift() ?? '')
    let left = chain(level + 1)
    while (tokens[0] !== undefined && Object.hasOwn(operators, tokens[0])) {
      const operator = tokens.shift()!
      left = applied(operator, operators[operator]!, left, chain(level + 1))
    }
    return left
  }

  function atom(token: string): Value {
    if (token === 'time()') return seconds
    if (/^\d+$/.test(token)) return Number(token)
    const [, name, inner = ''] = /^(spillway_\w+)(?:\{(.*)\})?$/.exec(token) ?? []
    const wanted = inner === '' ? [] : inner.split(',').map((each) => /^(\w+)="(.*)"$/.exec(each)!)
    return new Map(
      samples
        .filter((sample) => sample.name === name)
        .filter(({ labels }) => wanted.every(([, key = '', of]) => labels[key] === of))
        .map(({ labels, value }) => [JSON.stringify(labels), value]),
    )
  }
}

function applied(
  operator: string,
  of: (a: number, b: number) => number | boolean,
  left: Value,
  right: Value,
): Value {
  if (typeof left === 'number' && typeof right === 'number') return Number(of(left, right))
  if (operator === 'or') return new Map([...(right as Vector), ...(left as Vector)])
  const labels = typeof left === 'number' ? (right as Vector).keys() : left.keys()
  const at = (value: Value, key: string): number | undefined =>
    typeof value === 'number' ? value : value.get(key)
  return new Map(
    [...labels].flatMap((key) => {
      const [a, b] = [at(left, key), at(right, key)]
      const result = a === undefined || b === undefined ? false : of(a, b)
      return result === false ? [] : [[key, result === true ? a! : result] as const]
    }),
  )
}
