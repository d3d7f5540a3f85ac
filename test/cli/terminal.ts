import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { widthOf } from '../../src/cli/terminal/screen.ts'
import { CLI } from '../support/run-cli.ts'

export const hasTerminals = /util-linux/.test(spawnSync('script', ['--version']).stdout?.toString() ?? '')

export type OnTerminal = {
  /** The screens of the terminal, in the order in which they were shown. */
  readonly screens: readonly string[]
  readonly written: string
  readonly code: number | null
}

/** Runs the built command on a terminal of so many columns. @param onScreen may type something in */
export async function onTerminal(
  args: readonly string[],
  options: {
    readonly cwd: string
    readonly env: Readonly<Record<string, string>>
    readonly columns: number
    readonly onScreen?: (screen: string, type: (text: string) => void) => void
  },
): Promise<OnTerminal> {
  const { cwd, env, columns, onScreen = () => {} } = options
  const words = [process.execPath, CLI, ...args].map((word) => `'${word}'`).join(' ')
  const command = `stty cols ${columns} rows 24; exec ${words}`
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd,
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const terminal = new Terminal(columns)
  const screens: string[] = []
  let written = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written += text
    terminal.take(text)
    screens.push(terminal.text)
    onScreen(terminal.text, (keys) => child.stdin.write(keys))
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { screens, written, code }
}

/** A terminal emulator that knows the sequences that the command uses. */
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
    const tokens = (this.#rest + text).match(/\x1b\[[\d;?]*[A-Za-z]|\x1b\[?[\d;?]*$|./gsu) ?? []
    this.#rest = /^\x1b\[?[\d;?]*$/.test(tokens.at(-1) ?? '') ? (tokens.pop() ?? '') : ''
    for (const token of tokens) this.#do(token)
  }

  #do(token: string): void {
    const line = this.#lines[this.#row]!
    if (token === '\r') this.#column = 0
    else if (token === '\n') this.#down()
    else if (token.endsWith('m') && token.startsWith('\x1b')) return
    else if (token === '\x1b[K') line.length = Math.min(line.length, this.#column)
    else if (token === '\x1b[J') {
      line.length = Math.min(line.length, this.#column)
      this.#lines.length = this.#row + 1
    } else if (token.endsWith('A') && token.startsWith('\x1b')) {
      this.#row = Math.max(0, this.#row - Number(token.slice(2, -1)))
    } else if (token.startsWith('\x1b')) throw new Error(`not known here: ${JSON.stringify(token)}`)
    else this.#print(token)
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
