import * as z from 'zod'
import { extract } from './extract-keys.ts'
import { key } from './key.ts'
import { section, text } from './leaves.ts'
import { load } from './load-keys.ts'
import { service } from './service-keys.ts'
import { transform } from './transform-keys.ts'

export const pipelineFile = section({
  // Removed when files are merged. Here for editors and for the list of known keys.
  extends: key(
    z.string('the path of a pipeline file').optional(),
    'Pipeline file whose settings apply unless this file has its own, relative to this file. Default: none.',
  ),
  name: key(
    text(/^[a-z0-9-]{1,100}$/, 'up to 100 of a-z, 0-9 and -'),
    'Names the pipeline and its checkpoint. Required.',
  ),
  service: key(service, 'The service, and how to reach it. Required.'),
  extract: key(extract, 'What to request. Required.'),
  transform: key(transform.prefault({}), 'Masking and columns.'),
  load: key(load.prefault({}), 'Format and location of the data set.'),
})

/** The settings of a pipeline file, with the defaults that depend on no other key. */
export type PipelineFile = z.output<typeof pipelineFile>

/** Claims that a value is what the schema accepts. Its declaration spells the type out, without those of zod. */
export const asSettings = accepting(pipelineFile)

/** The settings of a pipeline file, for programs: the same keys, with strings where the file has strings. */
export type PipelineSettings = ReturnType<typeof asSettings>

type Plain<Type> = Type extends readonly (infer Item)[]
  ? Plain<Item>[]
  : Type extends object
    ? { [Key in keyof Type]: Plain<Type[Key]> }
    : Type

function accepting<Schema extends z.ZodType>(_: Schema) {
  return (value: unknown) => value as Plain<z.input<Schema>>
}

type Schema = z.core.JSONSchema.BaseSchema

/** A string with a reference can stand for a value of any type. */
const REFERENCE: Schema = { type: 'string', pattern: '\\$\\{' }

/** The JSON Schema (draft 2020-12) of pipeline files, for editors, made from the schema that the reader uses. */
export function pipelineJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(pipelineFile, {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      if (['string', 'number', 'boolean', 'enum'].includes(zodSchema._zod.def.type))
        allowReference(jsonSchema)
    },
  })
  // Required keys may be in a file that this one extends.
  delete schema.required
  const service = schema.properties?.service
  if (typeof service === 'object') delete service.required
  return {
    $schema: schema.$schema,
    title: 'Spillway pipeline',
    description: 'What to export from the service, how to mask it and where to write it.',
    ...schema,
    patternProperties: { '^x-': { description: 'Ignored: a place for YAML anchors.' } },
  }
}

function allowReference(schema: Schema): void {
  // A scalar that carries a description is visited twice: with it and without.
  if (schema.anyOf !== undefined) return
  if (schema.type === 'string' && schema.pattern === undefined && schema.enum === undefined) return
  const { description, default: byDefault, ...own } = schema
  for (const key of Object.keys(own)) delete schema[key]
  schema.anyOf = [own, REFERENCE]
}
