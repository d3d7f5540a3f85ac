import { columnsOf, type DecodePlan, type Pipeline } from '../../core/index.ts'
import type { EncodePlan } from '../../load/index.ts'
import type { RunOptions } from '../setting/index.ts'

/** How the pages of a pipeline become rows. */
export function decodePlan(pipeline: Pipeline, maskKey: Uint8Array | null): DecodePlan {
  const { extract, transform } = pipeline
  return {
    resource: extract.resource,
    columns: columnsOf(pipeline),
    extras: transform.extraColumns,
    order: extract.order,
    secret: transform.secret,
    identity: transform.identity,
    maskKey,
  }
}

/** How the rows of a pipeline become shards. */
export function encodePlan(
  pipeline: Pipeline,
  { version, build }: Pick<RunOptions, 'version' | 'build'>,
): EncodePlan {
  const { name, transform, load } = pipeline
  const columns = columnsOf(pipeline)
  return {
    format: load.format,
    columns,
    // In these very words: parquet-java trusts no statistics of a writer whose name it cannot take apart.
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
