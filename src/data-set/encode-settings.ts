import type { Pipeline } from '../core/index.ts'
import type { EncodeSettings } from '../load/index.ts'
import { columnsOf } from '../rows/index.ts'
import type { DataSetOptions } from './options.ts'

/** The settings for encoding shards. */
export function encodeSettings(
  pipeline: Pipeline,
  { version, build }: Pick<DataSetOptions, 'version' | 'build'>,
): EncodeSettings {
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
