import type { Argv, InferredOptionTypes } from 'yargs'
import type { Wanted } from '../../run/index.ts'
import { WHAT_IS_SHOWN } from './command.ts'

const STATES = ['failed', 'partial', 'pending', 'done', 'pruned'] as const

const CHOICE = {
  all: { type: 'boolean', default: false, describe: 'A line for each partition instead of each query' },
  state: {
    choices: STATES,
    array: true,
    requiresArg: true,
    describe: 'Only partitions in this state; repeatable',
  },
  query: {
    type: 'string',
    array: true,
    requiresArg: true,
    describe: "Only these queries, for example 'domain.*.com' or acme.com; repeatable",
  },
} as const

export type ChoiceArgs = InferredOptionTypes<typeof CHOICE>

/** Which partitions a table shows, and how much of them. */
export function choiceOptions<Args>(yargs: Argv<Args>): Argv<Args & ChoiceArgs> {
  return yargs.options(CHOICE).group(Object.keys(CHOICE), WHAT_IS_SHOWN) as Argv<Args & ChoiceArgs>
}

/** @returns what decides about partitions; null: all are wanted */
export async function wantedPartitions({
  state,
  query,
}: Pick<ChoiceArgs, 'state' | 'query'>): Promise<Wanted | null> {
  if (state === undefined && query === undefined) return null
  const isNamed = query === undefined ? () => true : await namesMatching(query)
  return (name, where) => (state === undefined || state.includes(where)) && isNamed(name)
}

/** A glob is held against the whole name of a query (`domain.acme.com`), and against what follows its type. */
async function namesMatching(globs: readonly string[]): Promise<(name: string) => boolean> {
  const { default: picomatch } = await import('picomatch')
  const matches = picomatch([...globs], { dot: true })
  const known = new Map<string, boolean>()
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    const isMatch = matches(name) || matches(name.slice(name.indexOf('.') + 1))
    known.set(name, isMatch)
    return isMatch
  }
}
