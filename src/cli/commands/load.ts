import { syncStatements, tableStatements } from '../../data-set/index.ts'
import { DIALECT_NAMES, LOAD_MODES, parseTarget } from '../../warehouse/index.ts'
import { command, flag, stringValue } from '../command-line/command.ts'
import { DATA_SET, dataSetFrom, OUTPUT } from '../command-line/pipeline-options.ts'
import { DONE } from '../terminal/exit-code.ts'
import { untilStopped } from '../terminal/signals.ts'
import { loadTables, requireOutside } from '../work/load-tables.ts'

export const load = command({
  positionals: { pipeline: DATA_SET },
  flags: {
    output: OUTPUT,
    to: {
      type: 'string',
      demandOption: true,
      requiresArg: true,
      describe: 'duckdb:<file> or postgres://user@host:port/database (password: PGPASSWORD, ~/.pgpass)',
    },
    schema: stringValue('Schema of the tables; created if missing'),
    table: stringValue('Name of the table: credentials or reports, if not given'),
    mode: {
      choices: LOAD_MODES,
      default: 'append' as const,
      describe: `Rows that exist already: ${LOAD_MODES.join(', ')} [append]`,
    },
    evolve: flag('Add columns that the table lacks'),
    json: flag('Print the result as JSON'),
  },
  examples: [
    ['$0 load pipeline.yaml --to duckdb:leaks.db', 'Into a file'],
    ['$0 load pipeline.yaml --to postgres://etl@db.example.com/leaks --mode upsert', 'Into PostgreSQL'],
  ],
  async run(args, io) {
    const target = parseTarget(args.to, io.cwd)
    const { pipeline, planned } = await dataSetFrom(args, io)
    await requireOutside(target, pipeline.load)
    return untilStopped(io, async (signals) => {
      const { schema = null, table = null, mode, evolve, json } = args
      await loadTables({ pipeline, planned }, target, { schema, table, mode, evolve, json }, signals.stop, io)
      return DONE
    })
  },
})

export const ddl = command({
  positionals: { pipeline: DATA_SET },
  flags: {
    output: OUTPUT,
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
  async run(args, io) {
    const { pipeline } = await dataSetFrom(args, io)
    const print = args.sync ? syncStatements : tableStatements
    await io.stdout.line(await print(pipeline, args.dialect, args.table))
    return DONE
  },
})
