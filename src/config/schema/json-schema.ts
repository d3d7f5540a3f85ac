import * as z from 'zod'
import { EXAMPLES } from './examples.ts'
import { pipelineFile } from './file-schema.ts'

type Schema = z.core.JSONSchema.BaseSchema

/** Texts with a reference stand for values of any kind, which only the reader knows. */
const REFERENCE: Schema = { type: 'string', pattern: '\\$\\{' }

/** The JSON Schema (draft 2020-12) of pipeline files, for editors; made from what the reader itself checks with. */
export function pipelineJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(pipelineFile, {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      if (['string', 'number', 'boolean', 'enum'].includes(zodSchema._zod.def.type))
        allowReference(jsonSchema)
    },
  })
  addExamples(schema, '')
  // What a file must say may stand in one that it extends; the reader says what is missing in the end.
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

function addExamples(schema: Schema, prefix: string): void {
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    if (typeof member !== 'object') continue
    const path = `${prefix}${key}`
    const { example, byDefault } = EXAMPLES[path] ?? {}
    if (example !== undefined) member.examples = [example]
    if (byDefault !== undefined) member.default = byDefault
    addExamples(member, `${path}.`)
    const items = member.items
    if (typeof items !== 'object' || Array.isArray(items)) continue
    for (const kind of items.oneOf ?? items.anyOf ?? []) addExamples(kind, `${path}.`)
  }
}
