import { TextDecoder } from 'node:util'
import { CsvError, parse } from 'csv-parse'
import { ExportError } from '../../../core/index.ts'

type CsvTable = {
  readonly header: readonly string[]
  readonly rows: AsyncIterable<CsvRow>
}

type CsvRow = { readonly cells: readonly string[]; readonly line: number }

/**
 * Reads CSV in UTF-8, or UTF-16 with a byte order mark, with commas, semicolons or tabs. A row may have fewer cells.
 * @throws ExportError `config` when it is in another encoding, is no CSV, has no header, or a row has more cells
 */
export async function readCsvTable(source: AsyncIterable<Uint8Array>, where: string): Promise<CsvTable> {
  const texts = decoded(source, where)
  let head = ''
  while (head.length < HEAD_LENGTH) {
    const { value, done } = await texts.next()
    if (done === true) break
    head += value
  }
  if (head.includes('\0')) throw unusable(where, ...NO_MARK)
  const [own = ''] = OWN_LINES.exec(head) ?? []
  const [header = ''] = head.slice(own.length).split(LINE_END, 1)
  async function* rest(): AsyncGenerator<string> {
    yield head.slice(own.length)
    yield* texts
  }
  const records = recordsOf(rest(), delimiterOf(header), own.split(LINE_END).length - 1, where)
  const first = await records.next()
  if (first.done === true) throw unusable(where, 'is empty', 'Give a CSV file with a header.')
  if (first.value.cells.some((cell) => cell.includes('@')))
    throw unusable(
      where,
      'has no header: its first line has addresses',
      'Put the names of its columns above it.',
    )
  // A row that does not fit the header is reported before the header's names are.
  const second = await records.next()
  async function* rows(): AsyncGenerator<CsvRow> {
    if (second.done === true) return
    yield second.value
    yield* records
  }
  return { header: first.value.cells.map((name) => name.trim()), rows: rows() }
}

const NO_MARK = [
  'seems to be UTF-16 without a byte order mark',
  'Export it in UTF-8, or convert it.',
] as const
const LINE_END = /\r\n|\n|\r/
/** Lines that PowerShell's Export-Csv and Excel may write before the header, and empty ones. */
const OWN_LINES = /^(?:(?:(?:#TYPE |sep=)[^\r\n]*)?(?:\r\n|\n|\r))*/
/** Such lines and the header are shorter. */
const HEAD_LENGTH = 1 << 16

/** That which the header has most of. */
function delimiterOf(header: string): string {
  const bare = header.replaceAll(/"[^"]*"/g, '')
  const counts = [',', ';', '\t'].map((each) => [each, bare.split(each).length] as const)
  return counts.reduce((best, each) => (each[1] > best[1] ? each : best))[0]
}

/** @param skipped lines before the text */
async function* recordsOf(
  text: AsyncIterable<string>,
  delimiter: string,
  skipped: number,
  where: string,
): AsyncGenerator<CsvRow> {
  let last = skipped
  // Not read from the stream: V8 would keep every record of its linked list until it marks the whole heap.
  const ready: CsvRow[] = []
  const parser = parse({
    delimiter,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count_less: true,
    skip_empty_lines: true,
    // Spreadsheets have rows of nothing at their end.
    skip_records_with_empty_values: true,
    on_record(cells: readonly string[], { lines }) {
      last = lines + skipped
      ready.push({ cells, line: last })
      return null
    },
  })
  // Calls fail with the same error.
  parser.on('error', () => {}).resume()
  try {
    for await (const some of text) {
      await done((called) => parser.write(some, called))
      yield* ready.splice(0)
    }
    await done((called) => parser.end(called))
    yield* ready
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    // A quote that is not closed is noticed at the end of the file.
    const line = error.code === 'CSV_QUOTE_NOT_CLOSED' ? last + 1 : Number(error.lines) + skipped
    if (error.code === 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH')
      throw unusable(
        where,
        `has more cells in line ${line} than in its header`,
        'Quote cells that hold a separator, and remove a separator at the end of the line, or a title or comment before the header.',
      )
    // Messages of the package quote what they found.
    throw unusable(where, `is no CSV (${error.code}, line ${line})`, 'Correct the quotes there.')
  }
}

/** @param call to a stream, whose callback gets an error */
function done(call: (called: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => call((error) => (error ? reject(error) : resolve())))
}

/** The text of a file in UTF-8, or in UTF-16 with a byte order mark. @throws ExportError `config` */
export async function* decoded(source: AsyncIterable<Uint8Array>, where: string): AsyncGenerator<string> {
  let decoder: TextDecoder | null = null
  let start = Buffer.alloc(0)
  const decode = (bytes?: Uint8Array): string => {
    decoder ??= new TextDecoder(encodingOf(start, where), { fatal: true })
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined })
    } catch {
      throw unusable(where, 'is neither UTF-8 nor UTF-16', 'Export it in UTF-8, or convert it.')
    }
  }
  for await (const bytes of source) {
    if (decoder !== null) yield decode(bytes)
    else {
      start = Buffer.concat([start, bytes])
      if (start.length >= 2) yield decode(start)
    }
  }
  if (decoder === null) yield decode(start)
  yield decode()
}

function encodingOf([first, second]: Uint8Array, where: string): string {
  if (first === 0 || second === 0) throw unusable(where, ...NO_MARK)
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
}

function unusable(where: string, how: string, next: string): ExportError {
  return new ExportError({ kind: 'config', what: `The file ${how}`, where, next })
}
