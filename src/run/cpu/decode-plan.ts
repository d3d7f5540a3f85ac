import {
  columnsOf,
  type DecodePlan,
  FEED_FIELDS,
  type Pipeline,
  type SuppressList,
} from '../../core/index.ts'

/** The settings for decoding pages. */
export function decodePlan(
  pipeline: Pipeline,
  maskKey: Uint8Array | null,
  suppress: readonly SuppressList[],
): DecodePlan {
  const { extract, transform } = pipeline
  return {
    resource: extract.resource,
    columns: columnsOf(pipeline),
    extras:
      extract.resource === 'feed' ? [...FEED_FIELDS, ...transform.extraColumns] : transform.extraColumns,
    order: extract.order,
    secret: transform.secret,
    identity: transform.identity,
    maskKey,
    suppress,
  }
}
