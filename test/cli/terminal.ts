import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { widthOf } from '../../src/cli/terminal/screen.ts'
import { CLI } from '../support/run-cli.ts'

/** `script` of util-linux gives a command a terminal of its own. */
export const hasTerminals = /util-linux/.test(spawnSync('script', ['--version']).stdout?.toString() ?? '')

export type OnTerminal = {
  /** What the terminal showed, from moment to moment. */
  readonly frames: readonly string[]
  /** Everything that was written to it. */
  readonly written: string
  readonly code: number | null
}

/** Runs the built command on a terminal of so many columns. @param onFrame may type something in */
export async function onTerminal(
  args: readonly string[],
  options: {
    readonly cwd: string
    readonly env: Readonly<Record<string, string>>
    readonly columns: number
    readonly onFrame?: (frame: string, type: (text: string) => void) => void
  },
): Promise<OnTerminal> {
  const { cwd, env, columns, onFrame = () => {} } = options
  const words = [process.execPath, CLI, ...args].map((word) => `'${word}'`).join(' ')
  const command = `stty cols ${columns} rows 24; exec ${words}`
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd,
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const terminal = new Terminal(columns)
  const frames: string[] = []
  let written = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written += text
    terminal.take(text)
    frames.push(terminal.text)
    onFrame(terminal.text, (keys) => child.stdin.write(keys))
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { frames, written, code }
}

/** As much of a terminal as the command makes use of. */
class Terminal {
  readonly #columns: number
  readonly #lines: string[][] = [[]]
  #row = 0
  #column = 0
  #rest = ''

  constructor(columns: number) {
    this.#columns = columns
  }

  get text(): string {
    return this.#lines.map((line) => Array.from(line, (cell) => cell ?? ' ').join('')).join('\n')
  }

  take(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what terminals are steered by
    const pieces = (this.#rest + text).match(/\x1b\[[\d;?]*[A-Za-z]|\x1b\[?[\d;?]*$|./gsu) ?? []
    // biome-ignore lint/suspicious/noControlCharactersInRegex: an escape that is not whole yet
    this.#rest = /^\x1b\[?[\d;?]*$/.test(pieces.at(-1) ?? '') ? (pieces.pop() ?? '') : ''
    for (const piece of pieces) this.#do(piece)
  }

  #do(piece: string): void {
    const line = this.#lines[this.#row]!
    if (piece === '\r') this.#column = 0
    else if (piece === '\n') this.#down()
    else if (piece.endsWith('m') && piece.startsWith('\x1b')) return
    else if (piece === '\x1b[K') line.length = Math.min(line.length, this.#column)
    else if (piece === '\x1b[J') {
      line.length = Math.min(line.length, this.#column)
      this.#lines.length = this.#row + 1
    } else if (piece.endsWith('A') && piece.startsWith('\x1b')) {
      this.#row = Math.max(0, this.#row - Number(piece.slice(2, -1)))
    } else if (piece.startsWith('\x1b')) throw new Error(`not known here: ${JSON.stringify(piece)}`)
    else this.#print(piece)
  }

  #print(character: string): void {
    if (this.#column + widthOf(character) > this.#columns) {
      this.#column = 0
      this.#down()
    }
    this.#lines[this.#row]![this.#column] = character
    this.#column += widthOf(character)
  }

  #down(): void {
    this.#row++
    this.#lines[this.#row] ??= []
  }
}
