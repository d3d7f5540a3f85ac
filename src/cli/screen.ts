import { createLogUpdate } from 'log-update'
import type { Environment } from '../config/index.ts'

/**
 * stderr: log lines and messages, and below them, on a terminal, lines that are redrawn in place. Whatever is
 * written pushes those down whole.
 */
export class Screen {
  readonly stream: NodeJS.WriteStream
  /** Whether lines can be redrawn: a terminal that can, and nobody who records everything. */
  readonly canRedraw: boolean
  readonly #redraw: ReturnType<typeof createLogUpdate>
  #shown = ''

  constructor(stream: NodeJS.WriteStream, env: Environment) {
    this.stream = stream
    this.canRedraw = stream.isTTY === true && env.TERM !== 'dumb' && !env.CI
    // The cursor stays: whoever hides it and is killed leaves a terminal without one.
    this.#redraw = createLogUpdate(stream, { showCursor: true })
    // Nobody listens to stderr any more; the work matters more than the log.
    stream.on('error', () => {})
  }

  get columns(): number {
    return this.stream.columns ?? 80
  }

  /** Writes whole lines, each with its end. */
  write(text: string): void {
    if (this.#shown === '') {
      this.stream.write(text)
      return
    }
    this.#redraw.clear()
    this.stream.write(text)
    this.#redraw(this.#shown)
  }

  /** Draws lines in the place of those drawn before. */
  show(lines: string): void {
    this.#shown = lines
    this.#redraw(lines)
  }

  /** Takes the drawn lines away. */
  clear(): void {
    if (this.#shown === '') return
    this.#shown = ''
    this.#redraw.clear()
  }
}
