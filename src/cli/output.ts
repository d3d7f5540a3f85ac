import type { WriteStream } from 'node:tty'

/**
 * stdout, which carries results only. When its reader goes away (`| head`, a terminal that is closed), the rest is dropped quietly.
 */
export class Output {
  readonly #stream: NodeJS.WriteStream
  #closed = false

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    stream.on('error', (error: NodeJS.ErrnoException) => {
      const isGone = error.code === 'EPIPE' || (error.code === 'EIO' && stream.isTTY)
      if (!isGone) throw error
      this.#closed = true
    })
  }

  /** Nobody reads any more: what takes long to print can end. */
  get closed(): boolean {
    return this.#closed
  }

  get terminal(): Pick<WriteStream, 'isTTY' | 'hasColors'> {
    return this.#stream
  }

  /** Writes text as it is; resolves when it is out, or when nobody reads any more. */
  async write(text: string): Promise<void> {
    if (this.#closed) return
    await new Promise<void>((resolve) => {
      this.#stream.write(text, () => resolve())
    })
  }

  async line(text: string): Promise<void> {
    await this.write(`${text}\n`)
  }
}
