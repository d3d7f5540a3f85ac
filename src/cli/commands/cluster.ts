import { initCluster } from '../../cluster/index.ts'
import { withDatabase } from '../cluster-database.ts'
import { command } from '../command.ts'
import { DONE } from '../exit-code.ts'

export const cluster = command({
  options: (yargs) =>
    yargs
      .positional('action', {
        choices: ['init'] as const,
        demandOption: true,
        describe: 'init: makes the tables, or brings them up to date; may be repeated',
      })
      .example('$0 cluster init', 'In the database that SPILLWAY_DATABASE_URL names')
      .example('SPILLWAY_DATABASE_URL=postgres://etl@db/spillway $0 cluster init', 'Password: PGPASSWORD'),
  run: (_args, io) =>
    withDatabase(io, { tables: false }, async (database) => {
      const { before, now } = await initCluster(database)
      const what =
        before === 0
          ? 'The tables are made'
          : before === now
            ? 'The tables were there'
            : 'The tables are up to date'
      await io.stdout.line(`${what}: schema spillway, version ${now}, in ${database.label}`)
      return DONE
    }),
})
