import type { ExtractSettings, NamedPipeline, Pipeline, TransformSettings } from '../core/index.ts'
import { columnsOf } from './schema.ts'

/**
 * What a row has, and the only part of a pipeline that may grow between runs. A shard is written with one schema, a chain
 * is requested with one.
 */
export type Schema = Pick<ExtractSettings, 'include'> &
  Pick<TransformSettings, 'columns' | 'extraColumns' | 'secretFacts'>

export function schemaOf({ extract, transform }: Pipeline | NamedPipeline): Schema {
  const { columns, extraColumns, secretFacts } = transform
  return { include: extract.include, columns, extraColumns, secretFacts }
}

/** The pipeline as one that exports these columns. @param lacking names of those that are null in some shards */
export function withSchema<P extends Pipeline | NamedPipeline>(
  pipeline: P,
  { include, ...columns }: Schema,
  lacking: readonly string[] = [],
): P {
  const { extract, transform } = pipeline
  return { ...pipeline, extract: { ...extract, include }, transform: { ...transform, ...columns, lacking } }
}

/** The pipeline as one that exports the columns of all these schemas, which do not contradict each other. */
export function withSchemas<P extends Pipeline | NamedPipeline>(pipeline: P, schemas: readonly Schema[]): P {
  const [first, ...others] = schemas
  if (first === undefined) return pipeline
  const union = others.reduce(joined, first)
  const lacking = union.columns.filter((name) => schemas.some(({ columns }) => !columns.includes(name)))
  return withSchema(pipeline, union, lacking)
}

/** Extra columns keep their order; added ones follow. */
export function joined(schema: Schema, added: Schema): Schema {
  const known = new Set(schema.extraColumns.map(({ name }) => name))
  return {
    include: [...new Set([...schema.include, ...added.include])],
    columns: [...new Set([...schema.columns, ...added.columns])],
    extraColumns: [...schema.extraColumns, ...added.extraColumns.filter(({ name }) => !known.has(name))],
    secretFacts: added.secretFacts ?? schema.secretFacts,
  }
}

/** What a schema has and another lacks, or has otherwise. */
export type SchemaDifference = {
  /** Names of columns, in their order. */
  readonly added: readonly string[]
  /** What is gone or is another, in words, by its key in the pipeline file. */
  readonly changed: readonly { readonly key: string; readonly text: string }[]
}

export function schemaDifference(
  before: Pipeline | NamedPipeline,
  now: Pipeline | NamedPipeline,
): SchemaDifference {
  const [was, is] = [schemaOf(before), schemaOf(now)]
  const changed: { key: string; text: string }[] = []
  const missing = (key: string, names: readonly string[]): void => {
    if (names.length > 0) changed.push({ key, text: `${key} no longer has ${names.join(', ')}` })
  }
  const names = columnsOf(now).map(({ name }) => name)
  const fields = new Map(is.extraColumns.map((field) => [field.name, field]))
  const goneFields = was.extraColumns.flatMap(({ name }) => (fields.has(name) ? [] : [name]))
  const goneIncludes = was.include.filter((name) => !is.include.includes(name))
  missing('extract.include', goneIncludes)
  missing('transform.extra_columns', goneFields)
  if (was.secretFacts !== null) {
    if (is.secretFacts === null)
      changed.push({ key: 'transform.secret_facts', text: 'transform.secret_facts is gone' })
    else if (JSON.stringify(was.secretFacts) !== JSON.stringify(is.secretFacts))
      changed.push({
        key: 'transform.secret_facts',
        text: `transform.secret_facts had the policy ${policyText(was)} and now has ${policyText(is)}`,
      })
  }
  for (const { name, path, type } of was.extraColumns) {
    const field = fields.get(name)
    if (field === undefined || (field.type === type && field.path.join('.') === path.join('.'))) continue
    const texts = [`${path.join('.')} ${type}`, `${field.path.join('.')} ${field.type}`]
    changed.push({
      key: 'transform.extra_columns',
      text: `transform.extra_columns had ${name} as ${texts[0]} and now has it as ${texts[1]}`,
    })
  }
  const explained = new Set([...goneFields, ...goneIncludes])
  const gone = was.columns.filter((name) => !names.includes(name) && !explained.has(name))
  if (was.secretFacts === null || is.secretFacts !== null) missing('transform.columns', gone)
  return { added: names.filter((name) => !was.columns.includes(name)), changed }
}

function policyText({ secretFacts }: Schema): string {
  const { minLength, classes } = secretFacts!.policy
  return `min_length ${minLength}, classes ${classes}`
}
