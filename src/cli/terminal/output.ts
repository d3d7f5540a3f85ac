import { ExportError } from '../../core/index.ts'
import type { Environment } from '../../pipeline/index.ts'
import { type Style, styleFor, wantsColour } from './screen.ts'
import { plainJson } from './text.ts'

const CHUNK_LENGTH = 64 * 1024

/** stdout, which has results only. Once its reader has left (`| head`), the rest is dropped. */
export class Output {
  readonly style: Style
  readonly #stream: NodeJS.WriteStream
  /** Whether a result, or a part of one, was printed. */
  hasResult = false
  #closed = false
  /** Why results cannot be written; null: they can, or the reader went away. */
  failure: ExportError | null = null

  constructor(stream: NodeJS.WriteStream, env: Environment) {
    this.style = styleFor(wantsColour(stream, env))
    this.#stream = stream
    stream.on('error', (error) => this.#fail(error))
  }

  get isTerminal(): boolean {
    return this.#stream.isTTY === true
  }

  /** Writes text; resolves when it is written, or stdout is closed. */
  async write(text: string): Promise<void> {
    if (this.#closed) return
    this.hasResult ||= text !== ''
    await new Promise<void>((resolve) => {
      this.#stream.write(text, (error) => {
        if (error) this.#fail(error)
        resolve()
      })
    })
  }

  #fail(error: NodeJS.ErrnoException): void {
    // Errors after the first one are its consequences.
    const hasLeft = error.code === 'EPIPE' || (error.code === 'EIO' && this.#stream.isTTY)
    if (!this.#closed && !hasLeft) {
      this.failure = new ExportError({
        kind: 'storage',
        what: `The output cannot be written: ${error.code ?? error.name}`,
        where: 'stdout',
        next: 'Check where stdout goes; exported data is on disk.',
        cause: error,
      })
    }
    this.#closed = true
  }

  async result(asJson: boolean, value: unknown, lines: Iterable<string>): Promise<void> {
    if (asJson) await this.line(plainJson(value))
    else await this.lines(lines)
  }

  async line(text: string): Promise<void> {
    await this.write(`${text}\n`)
  }

  async lines(lines: Iterable<string>): Promise<void> {
    await this.parts(ended(lines))
  }

  /** Writes strings as they are made, in blocks: a million of them are never in memory at once. */
  async parts(parts: Iterable<string> | AsyncIterable<string>): Promise<void> {
    let text = ''
    for await (const part of parts) {
      text += part
      if (text.length < CHUNK_LENGTH) continue
      await this.write(text)
      if (this.#closed) return
      text = ''
    }
    await this.write(text)
  }
}

function* ended(lines: Iterable<string>): Generator<string> {
  for (const line of lines) yield `${line}\n`
}
