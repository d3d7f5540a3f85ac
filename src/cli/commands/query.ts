import { stringify } from 'csv-stringify/sync'
import { type Answer, queryPipeline } from '../../run/index.ts'
import { command } from '../command.ts'
import { DONE } from '../exit-code.ts'
import { pipelineFrom, pipelineOptions } from '../pipeline-options.ts'
import { plainJson } from '../plain-text.ts'
import { counted } from '../quantities.ts'
import { textTable } from '../text-table.ts'

// More rows than that on a screen help nobody; --csv and --json have all.
const MAX_SHOWN = 100
const FIRST_ROWS = 10
const NO_TERMINAL_COLUMNS = 160

export const query = command({
  options: (yargs) =>
    pipelineOptions(yargs)
      .positional('sql', {
        type: 'string',
        describe: 'One SELECT; the data set is the view credentials, or reports',
      })
      .options({
        in: {
          type: 'string',
          requiresArg: true,
          describe: 'Ask a loaded duckdb:<file> instead of the files',
        },
        csv: { type: 'boolean', default: false, describe: 'Print the result as CSV' },
        json: { type: 'boolean', default: false, describe: 'Print the result as a JSON array of objects' },
      })
      .example('$0 query pipeline.yaml', 'Columns and first rows')
      .example(
        '$0 query pipeline.yaml "SELECT source_name, count(*) FROM credentials GROUP BY 1 ORDER BY 2 DESC"',
        'The largest leaks',
      ),
  async run(args, io) {
    const pipeline = await pipelineFrom(args.pipeline, args, io)
    const { resource } = pipeline.extract
    const sql = args.sql ?? `SELECT * FROM ${resource} LIMIT ${FIRST_ROWS}`
    const answer = await queryPipeline(pipeline, sql, { database: args.in ?? null, cwd: io.cwd })
    const columns = io.stdout.terminal ? (process.stdout.columns ?? NO_TERMINAL_COLUMNS) : NO_TERMINAL_COLUMNS
    if (args.json) await io.stdout.line(jsonText(answer))
    else if (args.csv) await io.stdout.write(csvText(answer))
    else await io.stdout.line(args.sql === undefined ? overview(answer, columns) : tableText(answer, columns))
    return DONE
  },
})

function jsonText({ columns, rows }: Answer): string {
  const objects = rows.map((row) => plainJson(Object.fromEntries(columns.map((name, i) => [name, row[i]]))))
  return objects.length === 0 ? '[]' : `[${objects.join(',\n')}]`
}

function csvText({ columns, rows }: Answer): string {
  const cells = rows.map((row) =>
    row.map((cell) =>
      typeof cell === 'object' && cell !== null
        ? JSON.stringify(cell)
        : typeof cell === 'boolean'
          ? String(cell)
          : cell,
    ),
  )
  return stringify([columns, ...cells], { quoted_empty: true, record_delimiter: '\n' })
}

function tableText({ columns: names, rows }: Answer, columns: number): string {
  const lines = [...textTable(names, rows.slice(0, MAX_SHOWN), columns)]
  const more = rows.length - MAX_SHOWN
  lines.push(
    more > 0 ? `… and ${counted(more, 'row')} more; --csv and --json print all` : counted(rows.length, 'row'),
  )
  return lines.join('\n')
}

/** A wide row does not fit a screen, so each column is a line, with what the first rows hold. */
function overview({ columns: names, rows }: Answer, columns: number): string {
  const header = ['column', ...rows.slice(0, 3).map((_, i) => `row ${i + 1}`)]
  return textTable(
    header,
    names.map((name, i) => [name, ...rows.slice(0, 3).map((row) => row[i])]),
    columns,
  ).join('\n')
}
