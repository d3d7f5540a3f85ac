import * as z from 'zod'
import { type Resource, type ResourceRules, rulesOf } from '../../core/index.ts'

/** The settings that decide whether others have an effect. */
export type Deciding = {
  readonly service: { readonly api_key_env?: string | undefined }
  readonly extract: { readonly resource: Resource }
  readonly transform: { readonly on_invalid: string }
  readonly load: { readonly format: string; readonly table_formats: readonly string[] }
}

/** Why a key has no effect, so that a file that sets it is refused; null: it has one. */
export type WhyIdle = (settings: Deciding) => string | null

type Declared = { readonly example: unknown; readonly whyIdle: WhyIdle }

const declarations = z.registry<Declared>()

/**
 * Declares a key of a pipeline file. This is the only declaration: the types of settings, messages, the JSON Schema,
 * `check --resolved` and the test of docs/pipeline.md follow it.
 * @param type what it accepts; a default is a part of it (`.prefault`), as the file would spell it
 * @param meaning for users; says what omitting the key does, if there is neither a default nor a need for it
 */
export function key<Type extends z.ZodType>(
  type: Type,
  meaning: string,
  example: z.input<Type>,
  whyIdle: WhyIdle = () => null,
): Type {
  const declared = type.meta({ description: meaning })
  declarations.add(declared, { example, whyIdle })
  return declared
}

/** The example of a key that was declared so; undefined: it is none. */
export function exampleOf(type: z.core.$ZodType): unknown {
  return declarations.get(type)?.example
}

/** A declared key, for what lists them. */
export type Key = {
  readonly name: string
  readonly whyIdle: WhyIdle
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
      whyIdle: declarations.get(declared)?.whyIdle ?? (() => null),
      byDefault: 'defaultValue' in def ? def.defaultValue : undefined,
      keys: type instanceof z.ZodObject ? keysOf(type) : null,
    }
  })
}

/** Refuses a key with other resources. @param why with its beginning */
export function onlyFor(isFor: (rules: ResourceRules) => boolean, why = ''): WhyIdle {
  return ({ extract: { resource } }) =>
    isFor(rulesOf(resource)) ? null : `does not go with resource: ${resource}${why}`
}

function withoutDefault(type: z.core.$ZodType): z.core.$ZodType {
  return type instanceof z.ZodOptional || type instanceof z.ZodPrefault ? type.def.innerType : type
}
