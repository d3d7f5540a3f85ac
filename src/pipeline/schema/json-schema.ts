import * as z from 'zod'
import type { Path } from '../problems/tree.ts'
import { pipelineFile } from './file-schema.ts'
import { type Condition, type Key, keysOf } from './key.ts'

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
  const extract = schema.properties?.extract
  const windows = typeof extract === 'object' ? extract.properties?.windows : undefined
  // The windows of a feed have a length alone.
  if (typeof windows === 'object') {
    const { from, every } = windows.properties as Record<string, Schema>
    windows.anyOf = [
      { type: 'object', properties: { from: from! }, required: ['from'] },
      { type: 'object', properties: { every: every! }, required: ['every'], additionalProperties: false },
    ]
  }
  return {
    $schema: schema.$schema,
    title: 'Spillway pipeline',
    description: 'What to export from the service, how to mask it and where to write it.',
    ...schema,
    patternProperties: { '^x-': { description: 'Ignored: a place for YAML anchors.' } },
    allOf: conditionsOf(KEYS, []),
  }
}

const KEYS = keysOf(pipelineFile)

/** For each key that has an effect beside some others alone: that it is not there, or they are; all in one file. */
function conditionsOf(keys: readonly Key[], parent: Path): readonly Schema[] {
  return keys.flatMap(({ name, keys, condition }) => {
    const path = [...parent, name]
    const inner = conditionsOf(keys ?? [], path)
    if (condition === null) return inner
    return [
      { anyOf: [at(path, false), met(condition), at(['name'], false), at(['extends'], {}, true)] },
      ...inner,
    ]
  })
}

function met({ of, is }: Condition): Schema {
  const other = of.reduce<Pick<Key, 'keys' | 'byDefault'>>(
    ({ keys }, name) => keys!.find((key) => key.name === name)!,
    { keys: KEYS, byDefault: undefined },
  )
  const { $schema, ...schema } = z.toJSONSchema(is)
  return at(of, { anyOf: [schema, REFERENCE] }, !is.safeParse(other.byDefault).success)
}

function at(path: Path, value: Schema | boolean, isRequired = false): Schema {
  return path.reduceRight<Schema | boolean>(
    (inner, key) => ({
      type: 'object',
      properties: { [key]: inner },
      ...(isRequired ? { required: [String(key)] } : {}),
    }),
    value,
  ) as Schema
}

function allowReference(schema: Schema): void {
  // A scalar that carries a description is visited twice: with it and without.
  if (schema.anyOf !== undefined) return
  if (schema.type === 'string' && schema.pattern === undefined && schema.enum === undefined) return
  const { description, default: byDefault, ...own } = schema
  for (const key of Object.keys(own)) delete schema[key]
  schema.anyOf = [own, REFERENCE]
}
