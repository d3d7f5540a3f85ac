import type { Pipeline } from '../../core/index.ts'
import { bringTables, type TableSummary } from '../../data-set/index.ts'
import { flag } from '../command-line/command.ts'
import { changing, dataSetCommand } from '../command-line/pipeline-options.ts'
import { catalogJson, catalogText } from '../results/catalog.ts'
import { counted, plainLine } from '../terminal/text.ts'

export const tables = dataSetCommand('change', {
  flags: {
    rebuild: flag('Make the tables anew, for example after the data set was moved; ends older snapshots'),
    json: flag('Print the result as JSON'),
  },
  examples: [
    ['$0 tables pipeline.yaml', 'After load.table_formats was set; runs do it by themselves'],
    ['$0 tables pipeline.yaml --rebuild', 'After the data set or load.table_location was moved'],
  ],
  epilogue: '`ddl` prints how each engine reads them.',
  async run(args, io, dataSet) {
    const brought = await changing(io, (options) => bringTables(dataSet, args.rebuild, options))
    const { tables: found, catalog, failure } = brought
    await io.stdout.result(
      args.json,
      { tables: found, ...(catalog === null ? {} : { catalog: catalogJson(catalog) }) },
      [
        ...(found.length === 0 ? [noneText(dataSet.pipeline)] : found.map(tableLine)),
        ...(catalog === null ? [] : [catalogText(catalog)]),
      ],
    )
    if (failure !== null) throw failure
  },
})

function noneText({ load }: Pipeline): string {
  const why = load.tables.formats.length === 0 ? 'load.table_formats names none' : 'there are no shards yet'
  return `no tables: ${why}`
}

function tableLine({ format, location, snapshot, rows, files }: TableSummary): string {
  return `${format}: ${plainLine(location)}, snapshot ${snapshot}: ${counted(files, 'shard')} with ${counted(rows, 'row')}`
}
