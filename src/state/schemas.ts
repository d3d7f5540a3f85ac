import type { NamedPipeline, Pipeline } from '../core/index.ts'
import { KNOWN_EXTRAS, type Schema, withSchemas } from '../rows/index.ts'
import type { SchemaJson } from './journal-entry.ts'

export function schemaToJson({ include, columns, extraColumns, secretFacts }: Schema): SchemaJson {
  return {
    include: [...include].sort(),
    columns: [...columns],
    extra_columns: extraColumns.map(({ name, path, type }) => ({ name, path: path.join('.'), type })),
    secret_facts:
      secretFacts === null
        ? null
        : { policy: { min_length: secretFacts.policy.minLength, classes: secretFacts.policy.classes } },
  }
}

export function schemaFromJson({ include, columns, extra_columns, secret_facts }: SchemaJson): Schema {
  return {
    include,
    columns,
    extraColumns: extra_columns.map(({ name, path, type }) => {
      const known = KNOWN_EXTRAS.find((field) => field.name === name)
      return known ?? { name, path: path.split('.'), type, meaning: null }
    }),
    secretFacts:
      secret_facts === null
        ? null
        : { policy: { minLength: secret_facts.policy.min_length, classes: secret_facts.policy.classes } },
  }
}

/** The pipeline with the columns that the data set's shards have; before the first, those of its newest schema. */
export function asExported<P extends Pipeline | NamedPipeline>(
  pipeline: P,
  { schemas, shards }: { readonly schemas: readonly Schema[]; readonly shards: Iterable<OfSchema> },
): P {
  return withSchemas(pipeline, usedSchemas(schemas, shards))
}

type OfSchema = { readonly schema?: number | undefined }

/** Those that shards name; the newest where none does. */
export function usedSchemas(schemas: readonly Schema[], shards: Iterable<OfSchema>): readonly Schema[] {
  const used = new Set<number>()
  if (schemas.length > 1) for (const { schema = 0 } of shards) used.add(schema)
  const named = schemas.filter((_, number) => used.has(number))
  return named.length > 0 ? named : schemas.slice(-1)
}
