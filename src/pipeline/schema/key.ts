import * as z from 'zod'
import { type Resource, type ResourceRules, rulesOf } from '../../core/index.ts'
import { type Path, valueAt } from '../problems/tree.ts'

/** What another key has to be, so that a key has an effect; else a file that sets it is refused. */
export type Condition = {
  readonly of: Path
  isMet(found: unknown): boolean
  /** What is said of the key, by the value of the other one. */
  unless(found: unknown): string
}

export function onlyIf<Found>(
  key: string,
  isMet: (found: Found) => boolean,
  unless: (found: Found) => string,
): Condition {
  return { of: key.split('.'), isMet, unless }
}

/** Refuses a key with other resources. */
export function onlyFor(isFor: (rules: ResourceRules) => boolean): Condition {
  return onlyIf<Resource>(
    'extract.resource',
    (found) => isFor(rulesOf(found)),
    (found) => `does not go with resource: ${found}`,
  )
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
  return condition.isMet(found) ? null : condition.unless(found)
}

function withoutDefault(type: z.core.$ZodType): z.core.$ZodType {
  return type instanceof z.ZodOptional || type instanceof z.ZodPrefault ? type.def.innerType : type
}
