import {
  columnsOf,
  type DecodePlan,
  FEED_FIELDS,
  type Pipeline,
  type SuppressList,
} from '../../core/index.ts'
import type { EncodePlan } from '../../load/index.ts'
import type { RunOptions } from '../options.ts'

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

/** The settings for encoding shards. */
export function encodePlan(
  pipeline: Pipeline,
  { version, build }: Pick<RunOptions, 'version' | 'build'>,
): EncodePlan {
  const { name, transform, load } = pipeline
  const columns = columnsOf(pipeline)
  return {
    format: load.format,
    columns,
    // In this exact form: parquet-java ignores the statistics of a writer whose name it cannot parse.
    createdBy: `spillway version ${version} (build ${build})`,
    fileMetadata: {
      'spillway.pipeline': name,
      'spillway.masking': JSON.stringify({ secret: transform.secret, identity: transform.identity }),
      'spillway.columns': JSON.stringify(
        Object.fromEntries(columns.map((column) => [column.name, column.meaning])),
      ),
    },
  }
}
