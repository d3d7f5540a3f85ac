import * as z from 'zod'
import type { Pipeline } from '../../core/index.ts'

/** How `check` shows a key that other keys have a say in. */
type Shown = {
  /** Whether the default applies; without it: always. */
  readonly appliesTo?: (pipeline: Pipeline) => boolean
  /** The default, if other keys decide it. */
  readonly resolved?: (pipeline: Pipeline) => unknown
  /** An item of a list, as one line. */
  readonly item?: (item: unknown, pipeline: Pipeline) => unknown
}

type Declared = Shown & { readonly example: unknown }

const declarations = z.registry<Declared>()

/**
 * Declares a key of a pipeline file. This is the only declaration: the types of settings, messages, the JSON Schema,
 * `check`, the starter of `init` and the test of docs/pipeline.md follow it.
 * @param type what it accepts; a default is a part of it (`.prefault`), as the file would spell it
 * @param meaning for users; says what omitting the key does, if there is neither a default nor a need for it
 */
export function key<Type extends z.ZodType>(
  type: Type,
  meaning: string,
  example: z.input<Type>,
  shown: Shown = {},
): Type {
  const declared = type.meta({ description: meaning })
  declarations.add(declared, { ...shown, example })
  return declared
}

/** The example of a key that was declared so; undefined: it is none. */
export function exampleOf(type: z.core.$ZodType): unknown {
  return declarations.get(type)?.example
}

/** A declared key, for what lists them. */
export type Key = Partial<Declared> & {
  readonly name: string
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
      ...declarations.get(declared),
      name,
      byDefault: 'defaultValue' in def ? def.defaultValue : undefined,
      keys: type instanceof z.ZodObject ? keysOf(type) : null,
    }
  })
}

function withoutDefault(type: z.core.$ZodType): z.core.$ZodType {
  return type instanceof z.ZodOptional || type instanceof z.ZodPrefault ? type.def.innerType : type
}
