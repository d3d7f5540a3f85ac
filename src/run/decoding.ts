import { getOrInsert, type Pipeline } from '../core/index.ts'
import {
  columnsOf,
  type DecodeSettings,
  ownFields,
  type Schema,
  type SuppressList,
  withSchema,
} from '../rows/index.ts'
import { createDecoder, type Decoder } from '../transform/index.ts'

/** The decoders of schemas, by their numbers, each made when it is needed. */
export function decodersOf(
  pipeline: Pipeline,
  schemas: readonly Schema[],
  maskKey: Uint8Array | null,
  suppress: SuppressList | null,
): (schema: number) => Decoder {
  const decoders = new Map<number, Decoder>()
  const make = (schema: number): Decoder =>
    createDecoder(decodeSettings(withSchema(pipeline, schemas[schema]!), maskKey, suppress))
  return (schema) => getOrInsert(decoders, schema, () => make(schema))
}

function decodeSettings(
  pipeline: Pipeline,
  maskKey: Uint8Array | null,
  suppress: SuppressList | null,
): DecodeSettings {
  const { extract, transform } = pipeline
  return {
    resource: extract.resource,
    columns: columnsOf(pipeline),
    extras: [...ownFields(extract.resource, extract.include), ...transform.extraColumns],
    secretFacts: transform.secretFacts,
    order: extract.order,
    secret: transform.secret,
    identity: transform.identity,
    maskKey,
    suppress,
  }
}
