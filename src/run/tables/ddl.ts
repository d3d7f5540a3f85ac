import { columnsOf, type Pipeline } from '../../core/index.ts'
import { shardExtension } from '../../load/index.ts'
import { DIALECTS, type DialectName, requireNames } from '../../warehouse/index.ts'

/**
 * The statements that make a table of an engine and bring what a pipeline exports into it, as text.
 * @param table left out: credentials or reports
 * @throws ExportError `config` when the name is empty, or is none that a load would take
 */
export function tableStatements(pipeline: Pipeline, dialect: DialectName, table?: string): string {
  const { name, extract, load } = pipeline
  requireNames(dialect === 'postgres' ? 'postgres' : 'duckdb', { schema: null, table: table ?? null })
  return DIALECTS[dialect]({
    pipeline: name,
    resource: extract.resource,
    table: table ?? extract.resource,
    columns: columnsOf(pipeline),
    format: load.format,
    path: load.path,
    extension: shardExtension(load.format),
    partitionBy: load.partitionBy,
  }).trimEnd()
}
