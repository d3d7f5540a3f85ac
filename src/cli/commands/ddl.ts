import { syncStatements, tableStatements } from '../../data-set/index.ts'
import { DIALECT_NAMES } from '../../warehouse/index.ts'
import { flag, stringValue } from '../command-line/command.ts'
import { dataSetCommand } from '../command-line/pipeline-options.ts'

export const ddl = dataSetCommand('read', {
  flags: {
    dialect: {
      choices: DIALECT_NAMES,
      demandOption: true,
      describe: `Engine to write for: ${DIALECT_NAMES.join(', ')}`,
    },
    table: stringValue('Name of the table: credentials or reports, if not given'),
    sync: flag('Print a script that brings the table in line with the data set'),
  },
  examples: [
    ['$0 ddl pipeline.yaml --dialect snowflake', 'Table, file format, stage and COPY'],
    [
      '$0 ddl pipeline.yaml --dialect clickhouse --sync | clickhouse-client',
      'After every run: only what has changed is copied',
    ],
    ['$0 ddl pipeline.yaml --dialect dbt > models/sources.yml', 'A source for dbt'],
  ],
  async run(args, io, dataSet) {
    const print = args.sync ? syncStatements : tableStatements
    await io.stdout.line(await print(dataSet, args.dialect, args.table))
  },
})
