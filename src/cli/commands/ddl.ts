import { tableStatements } from '../../run/index.ts'
import { DIALECT_NAMES } from '../../warehouse/index.ts'
import { command } from '../command-line/command.ts'
import { pipelineFrom, pipelineOptions } from '../command-line/pipeline-options.ts'
import { DONE } from '../terminal/exit-code.ts'

export const ddl = command({
  options: (yargs) =>
    pipelineOptions(yargs)
      .options({
        dialect: { choices: DIALECT_NAMES, demandOption: true, describe: 'Engine to write for' },
        table: {
          type: 'string',
          requiresArg: true,
          describe: 'Name of the table: credentials or reports, if not given',
        },
      })
      .example('$0 ddl pipeline.yaml --dialect snowflake', 'Table, file format, stage and COPY')
      .example('$0 ddl pipeline.yaml --dialect dbt > models/sources.yml', 'A source for dbt'),
  async run(args, io) {
    const pipeline = await pipelineFrom(args.pipeline, args, io)
    await io.stdout.line(tableStatements(pipeline, args.dialect, args.table))
    return DONE
  },
})
