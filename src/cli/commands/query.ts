import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { codeOf, ExportError, kindOfRows } from '../../core/index.ts'
import { type DataSet, type QueryStream, streamQuery } from '../../data-set/index.ts'
import { flag, type Io, stringValue, wrongUsage } from '../command-line/command.ts'
import { dataSetCommand } from '../command-line/pipeline-options.ts'
import { csvParts, jsonParts, shownOn } from '../results/row-text.ts'
import { headlineText } from '../results/verdict.ts'
import { styleFor } from '../terminal/screen.ts'
import { unannounced, untilStopped } from '../terminal/signals.ts'
import { alignedTable, resultTable } from '../terminal/table.ts'
import { counted } from '../terminal/text.ts'

// --csv and --json print all rows.
const MAX_SHOWN = 100
const FIRST_ROWS = 10

export const query = dataSetCommand('read', {
  positionals: {
    sql: {
      type: 'string',
      describe: 'One SELECT; the data set is the view credentials, or reports',
    },
  },
  flags: {
    file: { ...stringValue('Read the SQL from a file'), alias: 'f' },
    in: stringValue('Query a loaded duckdb:<file> instead of the files'),
    csv: flag('Print the result as CSV', { excludes: ['json'] }),
    json: flag('Print the result as a JSON array of objects'),
  },
  examples: [
    ['$0 query pipeline.yaml', 'Columns and first rows'],
    ['$0 query pipeline.yaml -f monthly.sql --csv', 'SQL of a file, as CSV'],
    ['$0 query pipeline.yaml "SELECT domain, count(*) FROM credentials GROUP BY 1"', 'Rows of each domain'],
  ],
  async run(args, io, dataSet) {
    const given = await sqlOf(args, io)
    const sql = given ?? `SELECT * FROM ${kindOfRows(dataSet.pipeline.extract.resource)} LIMIT ${FIRST_ROWS}`
    const take = async (result: QueryStream): Promise<void> => {
      const { stdout } = io
      if (args.in === undefined) await warnOfGaps(dataSet, io)
      if (args.json) await stdout.parts(jsonParts(result))
      else if (args.csv) await stdout.parts(shownOn(stdout, csvParts(result)))
      else await printTable(result, stdout)
    }
    const settings = { database: args.in ?? null, cwd: io.cwd }
    await untilStopped(io, ({ stop }) => streamQuery(dataSet, sql, { ...settings, stop }, take), unannounced)
  },
})

/** The SQL that is given; undefined: none. @throws ExportError `config` */
async function sqlOf(
  { sql, file }: { readonly sql?: string | undefined; readonly file?: string | undefined },
  { cwd }: Io,
): Promise<string | undefined> {
  if (file === undefined) return sql
  if (sql !== undefined)
    throw wrongUsage('The SQL is given twice: as an argument and by --file', 'Give one of them.')
  const path = resolve(cwd, file)
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new ExportError({
      kind: 'config',
      what: `The SQL cannot be read (${codeOf(cause)})`,
      where: path,
      next: 'Correct --file.',
      cause,
    })
  }
}

export async function warnOfGaps(dataSet: DataSet, io: Io): Promise<void> {
  const verdict = await dataSet.verdict()
  if (verdict.complete) return
  const headline = headlineText(verdict, styleFor(false))
  io.screen.write(`The export is ${headline}; the result covers the exported part.\n`, 'warn')
}

async function printTable({ columns, batches }: QueryStream, stdout: Io['stdout']): Promise<void> {
  const first: (readonly unknown[])[] = []
  let all = 0
  for await (const rows of batches) {
    all += rows.length
    if (first.length < MAX_SHOWN) first.push(...rows.slice(0, MAX_SHOWN - first.length))
  }
  const lines = [...alignedTable(resultTable(columns, first), styleFor(false))]
  const more = all - first.length
  lines.push(
    more > 0 ? `… and ${counted(more, 'row')} more; --csv and --json print all` : counted(all, 'row'),
  )
  await stdout.line(lines.join('\n'))
}
