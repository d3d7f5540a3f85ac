import type { Pipeline } from '../core/index.ts'
import { columnsOf, type DecodeSettings, ownFields, type SuppressList } from '../rows/index.ts'

/** The settings for decoding pages. */
export function decodeSettings(
  pipeline: Pipeline,
  maskKey: Uint8Array | null,
  suppress: readonly SuppressList[],
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
