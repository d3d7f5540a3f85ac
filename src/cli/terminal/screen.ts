import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import stringWidth from 'string-width'
import type { LogFields } from '../../core/index.ts'
import type { Environment } from '../../pipeline/index.ts'

type MessageLevel = 'info' | 'warn' | 'error'

type Status = { readonly text: string; readonly fields: LogFields | null }

const ERASE_LINE = '\r\x1b[K'

/** stderr, with a line of progress. The cursor stays visible: a killed process could not show it again. */
export class Screen {
  readonly stream: NodeJS.WriteStream
  readonly canRedraw: boolean
  progress: 'redrawn' | 'lines' | 'none' = 'none'
  /** How far the work is; null: nothing is known. */
  status: (() => Status) | null = null
  #shown = ''
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
    if (this.#messages === null) this.writeLog(text)
    else if (text.trim() !== '') this.#messages(text.trim(), level)
  }

  writeLog(text: string): void {
    this.stream.write(this.#shown === '' ? text : `${ERASE_LINE}${text}${this.#shown}`)
  }

  show(line: string): void {
    // Room for the echo of Ctrl-C.
    const next = cutTo(line, this.columns - 3)
    if (this.progress !== 'redrawn' || next === this.#shown) return
    this.stream.write(`${ERASE_LINE}${next}`)
    this.#shown = next
  }

  isAt(line: string): void {
    this.status = () => ({ text: line, fields: null })
  }

  clear(): void {
    this.status = null
    if (this.#shown !== '') this.stream.write(ERASE_LINE)
    this.#shown = ''
  }
}

export function widthOf(text: string): number {
  return stringWidth(text)
}

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

export function padTo(text: string, columns: number, align: 'left' | 'right' = 'left'): string {
  const blanks = ' '.repeat(Math.max(0, columns - widthOf(text)))
  return align === 'left' ? text + blanks : blanks + text
}

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

export type Style = (colour: Colour, text: string) => string

/** Whether a stream is a terminal with colours and the user wants them (https://no-color.org). */
export function wantsColour(stream: Pick<WriteStream, 'isTTY' | 'hasColors'>, env: Environment): boolean {
  return stream.isTTY === true && !env.NO_COLOR && stream.hasColors(16, { ...env })
}

export function styleFor(colour: boolean): Style {
  // By default styleText checks stdout, which may be another stream.
  return colour ? (name, text) => styleText(name, text, { validateStream: false }) : (_, text) => text
}
