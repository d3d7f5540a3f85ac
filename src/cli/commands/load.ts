import { LOAD_MODES, parseTarget } from '../../warehouse/index.ts'
import { choiceOf, flag, requiredValue, stringValue } from '../command-line/command.ts'
import { dataSetCommand } from '../command-line/pipeline-options.ts'
import { untilStopped } from '../terminal/signals.ts'
import { loadTables, requireOutside } from '../work/load-tables.ts'

export const load = dataSetCommand('read', {
  flags: {
    to: requiredValue(
      'duckdb:<file> or postgres://user@host:port/database (password: PGPASSWORD, ~/.pgpass)',
    ),
    schema: stringValue('Schema of the tables; created if missing'),
    table: stringValue('Name of the table: credentials or reports, if not given'),
    mode: choiceOf(LOAD_MODES, 'append', `Rows that exist already: ${LOAD_MODES.join(', ')}`),
    evolve: flag('Add columns that the table lacks'),
    supersede: stringValue('Take the place of this data set, by its id: in one transaction its rows go'),
    json: flag('Print the result as JSON'),
  },
  examples: [
    ['$0 load pipeline.yaml --to duckdb:leaks.db', 'Into a file'],
    ['$0 load pipeline.yaml --to postgres://etl@db.example.com/leaks --mode upsert', 'Into PostgreSQL'],
  ],
  async run(args, io, dataSet) {
    const target = parseTarget(args.to, io.cwd)
    await requireOutside(target, dataSet.pipeline.load)
    const { schema, table, mode, evolve, supersede, json } = args
    return untilStopped(io, ({ stop }) =>
      loadTables(dataSet, target, { schema, table, mode, evolve, supersede, json }, stop, io),
    )
  },
})
