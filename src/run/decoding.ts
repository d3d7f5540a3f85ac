import {
  ExportError,
  getOrInsert,
  LEFT_OUT,
  type Pipeline,
  repeatsSecret,
  unlessSecret,
} from '../core/index.ts'
import {
  columnsOf,
  type DecodeSettings,
  MAX_CURSOR_BYTES,
  ownFields,
  type Schema,
  type SuppressList,
  withSchema,
} from '../rows/index.ts'
import { createDecoder, type Decoder, isKnownField, UNNAMED_FIELDS } from '../transform/index.ts'

/** The decoders of schemas, by their numbers, each made when it is needed. Their pages repeat no known secret. */
export function decodersOf(
  pipeline: Pipeline,
  schemas: readonly Schema[],
  maskKey: Uint8Array | null,
  suppress: SuppressList | null,
): (schema: number) => Decoder {
  const decoders = new Map<number, Decoder>()
  const make = (schema: number): Decoder =>
    pagesWithoutSecrets(
      createDecoder(decodeSettings(withSchema(pipeline, schemas[schema]!), maskKey, suppress)),
    )
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

/** Pages hold known secrets only in rows, which are the data itself. A cursor with one cannot be stored. */
export function pagesWithoutSecrets(decode: Decoder): Decoder {
  return (body, context) => {
    const page = decode(body, context)
    if (page.next !== null && isKept(page.next) && repeatsSecret(page.next, 'long'))
      throw new ExportError({
        kind: 'data',
        what: `The cursor that the service sent cannot be stored: ${LEFT_OUT}`,
        where: `${context.partition}, page ${context.page + 1}`,
        next: 'Choose windows so short that each fits on one page, and report it to the service.',
      })
    return {
      ...page,
      unknownFields: countedBy(page.unknownFields),
      quarantined: page.quarantined.map((item) => ({ ...item, item: cleared(item.item) })),
    }
  }
}

/** A longer one is rejected for its length and need not be searched. */
function isKept(cursor: string): boolean {
  return Buffer.byteLength(cursor) <= MAX_CURSOR_BYTES
}

function countedBy(counts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const cleared = new Map<string, number>()
  for (const [name, times] of Object.entries(counts)) {
    const shown = shownName(name)
    cleared.set(shown, (cleared.get(shown) ?? 0) + times)
  }
  return Object.fromEntries(cleared)
}

function cleared(value: unknown): unknown {
  if (typeof value === 'string') return unlessSecret(value, 'long')
  if (Array.isArray(value)) return value.map(cleared)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      isKnownField(name) ? name : shownName(name),
      cleared(inner),
    ]),
  )
}

/** The name of a field that the service does not document. */
function shownName(name: string): string {
  return repeatsSecret(name) ? UNNAMED_FIELDS : name
}
