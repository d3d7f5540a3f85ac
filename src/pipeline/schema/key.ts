import * as z from 'zod'
import { RESOURCE_NAMES, type Resource, type ResourceRules, rulesOf } from '../../core/index.ts'
import { valueAt } from '../problems/tree.ts'

/** What another key has to be, so that a key has an effect; else a file that sets it is refused. */
export type Condition = {
  readonly of: readonly string[]
  readonly is: z.ZodType
  /** What is said of the key, by the value of the other one. */
  readonly unless: (found: unknown) => string
}

export function onlyIf(key: `${string}.${string}`, is: z.ZodType, unless: Condition['unless']): Condition {
  return { of: key.split('.'), is, unless }
}

const conditions = new WeakMap<z.core.$ZodType, Condition>()

/**
 * The only declaration of a key: types, messages, JSON Schema, `check --resolved` and the test of its page follow it.
 * @param meaning for users; says what omitting the key does, if it has no default and is not required
 */
export function key<Type extends z.ZodType>(
  type: Type,
  meaning: string,
  condition: Condition | null = null,
): Type {
  const declared = type.meta({ description: meaning })
  if (condition !== null) conditions.set(declared, condition)
  return declared
}

/** A declared key, for what lists them. */
export type Key = {
  readonly name: string
  readonly condition: Condition | null
  /** As in a pipeline file; undefined: none. */
  readonly byDefault: unknown
  /** The keys of a section; null: it is none. */
  readonly keys: readonly Key[] | null
}

/** The keys of a section, in the order of the reference. */
export function keysOf(section: z.ZodObject): readonly Key[] {
  return Object.entries(section.shape).map(([name, declared]) => {
    const { def } = declared._zod
    const type = withoutDefault(declared)
    return {
      name,
      condition: conditions.get(declared) ?? null,
      byDefault: 'defaultValue' in def ? def.defaultValue : undefined,
      keys: type instanceof z.ZodObject ? keysOf(type) : null,
    }
  })
}

/** Why a key has no effect beside others; null: it has one. @param settings of a file, with their defaults */
export function whyIdle({ condition }: Key, settings: unknown): string | null {
  if (condition === null) return null
  const found = valueAt(settings, condition.of)
  return condition.is.safeParse(found).success ? null : condition.unless(found)
}

/** Refuses a key with other resources. @param why with its beginning */
export function onlyFor(
  isFor: (rules: ResourceRules) => boolean,
  why: (rules: ResourceRules) => string = () => '',
): Condition {
  const names = RESOURCE_NAMES.filter((name) => isFor(rulesOf(name)))
  return onlyIf(
    'extract.resource',
    z.enum(names),
    (found) => `does not go with resource: ${found}${why(rulesOf(found as Resource))}`,
  )
}

function withoutDefault(type: z.core.$ZodType): z.core.$ZodType {
  return type instanceof z.ZodOptional || type instanceof z.ZodPrefault ? type.def.innerType : type
}
