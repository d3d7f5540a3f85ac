import { readMaskKey, readSecret } from '../../config/index.ts'
import { systemClock } from '../../core/index.ts'
import { type LoadSummary, loadWarehouse } from '../../run/index.ts'
import { LOAD_MODES, parseTarget } from '../../warehouse/index.ts'
import { command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { pipelineFrom, pipelineOptions } from '../pipeline-options.ts'
import { plainJson, plainLine } from '../plain-text.ts'
import { count, counted, duration } from '../quantities.ts'
import { announceStop } from '../signals.ts'

export const load = command({
  options: (yargs) =>
    pipelineOptions(yargs)
      .options({
        to: {
          type: 'string',
          demandOption: true,
          requiresArg: true,
          describe: 'duckdb:<file> or postgres://user@host:port/database (password: PGPASSWORD, ~/.pgpass)',
        },
        schema: {
          type: 'string',
          requiresArg: true,
          describe: 'Schema of the tables; made if it is not there',
        },
        table: {
          type: 'string',
          requiresArg: true,
          describe: 'Name of the table: credentials or reports, if not given',
        },
        mode: {
          choices: LOAD_MODES,
          default: 'append' as const,
          describe: 'What becomes of rows that are there already',
        },
        evolve: { type: 'boolean', default: false, describe: 'Add columns that the table lacks' },
        json: { type: 'boolean', default: false, describe: 'Print the result as JSON' },
      })
      .example('$0 load pipeline.yaml --to duckdb:leaks.db', 'Into a file')
      .example(
        '$0 load pipeline.yaml --to postgres://etl@db.example.com/leaks --mode upsert',
        'Into PostgreSQL',
      ),
  async run(args, io) {
    const { env, cwd, screen, stdout } = io
    const target = parseTarget(args.to, cwd)
    const pipeline = await pipelineFrom(args.pipeline, args, io)
    const signals = io.signals.listen((signal) => announceStop(signal, screen))
    try {
      const summary = await loadWarehouse(pipeline, target, {
        clock: systemClock,
        stop: signals.stop,
        readSecret: (name) => readSecret(name, env),
        readMaskKey: () => readMaskKey(pipeline, env),
        schema: args.schema ?? null,
        table: args.table ?? null,
        mode: args.mode,
        evolve: args.evolve,
        onWait: () =>
          screen.write(`Another load is at work in ${plainLine(target.label)}; waiting for it to end.\n`),
        onShard: (path, number, of) => {
          if (screen.canRedraw) {
            screen.show(
              `shard ${count(number)} of ${count(of)}: ${plainLine(path)}`.slice(0, screen.columns - 1),
            )
          }
        },
      }).finally(() => screen.clear())
      await stdout.line(args.json ? plainJson(summaryJson(summary)) : summaryText(summary))
      return DONE
    } finally {
      signals.release()
    }
  },
})

function summaryJson({ target, table, shards, rows, replacedTexts, durationMs }: LoadSummary) {
  return { target, table, shards, rows, replaced_texts: replacedTexts, duration_ms: durationMs }
}

function summaryText({ target, table, shards, rows, replacedTexts, durationMs }: LoadSummary): string {
  const { loaded, skipped, replaced } = shards
  const lines = [
    `${plainLine(table)} in ${plainLine(target)}: ${counted(rows, 'row')} loaded in ${duration(durationMs)}`,
    `shards: ${count(loaded)} loaded, ${count(replaced)} replaced, ${count(skipped)} there already`,
  ]
  if (replacedTexts > 0) {
    lines.push(
      `${counted(replacedTexts, 'row')} held a NUL, which PostgreSQL does not take: it is U+FFFD there`,
    )
  }
  return lines.join('\n')
}
