import type { WriteStream } from 'node:tty'
import { stripVTControlCharacters, styleText } from 'node:util'
import stringWidth from 'string-width'
import type { LogFields } from '../../core/index.ts'
import type { Environment } from '../../pipeline/index.ts'

type MessageLevel = 'info' | 'warn' | 'error'

/** How far work is: for people, in one line or as it is drawn, and, if it has them, as the fields of an event. */
type Status = { readonly text: string; readonly drawn?: string; readonly fields: LogFields | null }

const ERASE_BELOW = '\x1b[J'
const ERASE_LINE_END = '\x1b[K'

/**
 * stderr: log lines and messages; below them, on a terminal, lines that are redrawn in place. The cursor is in the
 * empty line below, so that the echo of the keyboard (`^C`) does not mix with them. It stays visible: a killed process
 * could not show it again.
 */
export class Screen {
  readonly stream: NodeJS.WriteStream
  /** Whether lines can be redrawn: on a terminal that can, outside CI. */
  readonly canRedraw: boolean
  /** How progress is shown: redrawn in place, a line each half minute, or not at all. */
  progress: 'redrawn' | 'lines' | 'none' = 'none'
  /** How far the work is; null: nothing is known. */
  status: (() => Status) | null = null
  #shown: readonly string[] = []
  #messages: ((text: string, level: MessageLevel) => void) | null = null

  constructor(stream: NodeJS.WriteStream, env: Environment) {
    this.stream = stream
    this.canRedraw = stream.isTTY === true && env.TERM !== 'dumb' && !env.CI
    // The reader of stderr has left. The command continues without its log.
    stream.on('error', () => {})
  }

  get columns(): number {
    // A terminal may have no size yet.
    return this.stream.columns || 80
  }

  /** Sends messages to a log instead: with --log-format json, stderr is JSON only. */
  divert(messages: (text: string, level: MessageLevel) => void): void {
    this.#messages = messages
  }

  /** Writes a message for people: whole lines, each with its end. */
  write(text: string, level: MessageLevel = 'info'): void {
    if (this.#messages === null) this.writeLog(this.stream.isTTY ? folded(text, this.columns) : text)
    else if (text.trim() !== '') this.#messages(text.trim(), level)
  }

  /** Writes lines of a log, each with its end. */
  writeLog(text: string): void {
    const drawn = this.#shown.map((line) => `${line}\n`).join('')
    this.stream.write(drawn === '' ? text : `${this.#toTop()}${ERASE_BELOW}${text}${drawn}`)
  }

  /** Draws lines over those drawn before; each has to be narrower than the terminal. */
  show(lines: string): void {
    if (this.progress !== 'redrawn') return
    const next = lines.split('\n').slice(0, Math.max(1, (this.stream.rows || 24) - 1))
    if (next.join('\n') === this.#shown.join('\n')) return
    // Overwriting does not flicker, erasing does.
    const text = next.map((line) => `${line}${ERASE_LINE_END}\n`).join('')
    this.stream.write(`${this.#toTop()}${text}${ERASE_BELOW}`)
    this.#shown = next
  }

  /** Draws anew below what others have written: a shell, while the process was stopped. */
  drawBelow(): void {
    this.#shown = []
  }

  /** How far the work is, in one line. */
  isAt(line: string): void {
    this.status = () => ({ text: line, fields: null })
  }

  /** The work is over: erases the drawn lines. */
  clear(): void {
    this.status = null
    if (this.#shown.length === 0) return
    this.stream.write(`${this.#toTop()}${ERASE_BELOW}`)
    this.#shown = []
  }

  /** To the beginning of the first drawn line. A terminal that became narrower has wrapped them. */
  #toTop(): string {
    const rows = this.#shown.map((line) => {
      const width = widthOf(stripVTControlCharacters(line))
      return Math.max(1, Math.ceil(width / this.columns))
    })
    const up = rows.reduce((sum, count) => sum + count, 0)
    return up === 0 ? '' : `\r\x1b[${up}A`
  }
}

/** Columns that a string takes on a terminal. */
export function widthOf(text: string): number {
  return stringWidth(text)
}

/** Blanks and a word. What is in backticks or quotes, such as a command, is one word. */
const WORDS = / *((?:`[^`]*`|"[^"]*"|[^ ])+)/g

/** Breaks lines that are longer than so many columns between words. They go on below the text after their label. */
export function folded(text: string, columns: number): string {
  return text
    .split('\n')
    .flatMap((line) => foldedLine(line, columns))
    .join('\n')
}

function foldedLine(line: string, columns: number): readonly string[] {
  if (widthOf(line) <= columns) return [line]
  // A label ends with two blanks or more.
  const [label = ''] = /^ *(?:\S+(?: \S+)* {2,})*/.exec(stripVTControlCharacters(line)) ?? []
  const indent = ' '.repeat(label.length <= columns / 2 ? label.length : 2)
  const lines: string[] = ['']
  for (const [blanksAndWord, word] of line.matchAll(WORDS)) {
    const last = lines.at(-1)!
    const isLonger = widthOf(indent + word) > columns
    if (last === '' || isLonger || widthOf(last + blanksAndWord) <= columns)
      lines[lines.length - 1] = last + blanksAndWord
    else lines.push(indent + word)
  }
  return lines
}

/** Cuts a text to a width; a cut text ends in `…`. */
export function cutTo(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  if (columns <= 0) return ''
  let cut = ''
  let left = columns - 1
  for (const character of text) {
    left -= widthOf(character)
    if (left < 0) break
    cut += character
  }
  return `${cut.trimEnd()}…`
}

/** Cuts or pads a text to a width. */
export function fitTo(text: string, columns: number, align: 'left' | 'right' = 'left'): string {
  const cut = cutTo(text, columns)
  const blanks = ' '.repeat(Math.max(0, columns - widthOf(cut)))
  return align === 'left' ? cut + blanks : blanks + cut
}

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/** Colours a text, unless colours are off. */
export type Style = (colour: Colour, text: string) => string

/** Whether a stream is a terminal with colours and the user wants them (https://no-color.org). */
export function wantsColour(stream: Pick<WriteStream, 'isTTY' | 'hasColors'>, env: Environment): boolean {
  return stream.isTTY === true && !env.NO_COLOR && stream.hasColors(16, { ...env })
}

export function styleFor(colour: boolean): Style {
  // By default styleText checks stdout, which may be another stream.
  return colour ? (name, text) => styleText(name, text, { validateStream: false }) : (_, text) => text
}
