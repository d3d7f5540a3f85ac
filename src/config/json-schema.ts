import { z } from 'zod'
import { pipelineFile } from './file-schema.ts'

/** Texts with a reference stand for values of any kind, which only the reader knows. */
const REFERENCE: z.core.JSONSchema.BaseSchema = { type: 'string', pattern: '\\$\\{' }

/** The JSON Schema (draft 2020-12) of pipeline files, for editors; made from what the reader itself checks with. */
export function pipelineJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(pipelineFile, {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      if (['string', 'number', 'boolean', 'enum'].includes(zodSchema._zod.def.type))
        allowReference(jsonSchema)
    },
  })
  return {
    $schema: schema.$schema,
    title: 'Spillway pipeline',
    description: 'What to export from the service, how to mask it and where to write it.',
    ...schema,
  }
}

function allowReference(schema: z.core.JSONSchema.BaseSchema): void {
  // A scalar that carries a description is visited twice: with it and without.
  if (schema.anyOf !== undefined) return
  if (schema.type === 'string' && schema.pattern === undefined && schema.enum === undefined) return
  const { description, default: byDefault, ...own } = schema
  for (const key of Object.keys(own)) delete schema[key]
  schema.anyOf = [own, REFERENCE]
}
