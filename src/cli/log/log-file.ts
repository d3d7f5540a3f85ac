import { closeSync, constants, fstatSync, openSync, statSync, writeSync } from 'node:fs'
import { ExportError } from '../../core/index.ts'

// A pipe does not make its writer wait for a reader. Windows does not know this.
const { O_APPEND, O_CREAT, O_WRONLY, O_NONBLOCK = 0 } = constants
const LOOK_MS = 1000

/**
 * A file that log lines are added to. One that was moved away, as logrotate does, is made anew under its name, a second
 * later at most; one that was cut to nothing goes on from there. Private: 0600.
 */
export class LogFile {
  readonly #path: string
  readonly #onTrouble: (message: string) => void
  #fd: number | null
  #lookedMs = 0
  #isTroubled = false

  /**
   * @param onTrouble called once when nothing can be written any more; the work matters more than the log
   * @throws ExportError `config` when it can't be opened, or is no regular file
   */
  constructor(path: string, onTrouble: (message: string) => void) {
    this.#path = path
    this.#onTrouble = onTrouble
    try {
      this.#fd = openRegular(path)
    } catch (error) {
      const next = 'Choose a file in a folder that is there and can be written.'
      throw new ExportError('config', `The log file can not be opened: ${codeOf(error)}`, path, next, {
        cause: error,
      })
    }
  }

  /** @param line with its end */
  write(line: string): void {
    try {
      this.#followPath()
      if (this.#fd === null) return
      for (let bytes = Buffer.from(line); bytes.length > 0; ) {
        bytes = bytes.subarray(writeSync(this.#fd, bytes))
      }
      this.#isTroubled = false
    } catch (error) {
      if (this.#isTroubled) return
      this.#isTroubled = true
      this.#onTrouble(`The log file can not be written: ${codeOf(error)} (${this.#path})`)
    }
  }

  /** Opens what stands under the name now, when that is another file. */
  #followPath(): void {
    const nowMs = performance.now()
    if (nowMs - this.#lookedMs < LOOK_MS) return
    this.#lookedMs = nowMs
    const there = statSync(this.#path, { throwIfNoEntry: false })
    const own = this.#fd === null ? null : fstatSync(this.#fd)
    if (own !== null && there?.ino === own.ino && there.dev === own.dev) return
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
    this.#fd = openRegular(this.#path)
  }
}

function openRegular(path: string): number {
  const fd = openSync(path, O_APPEND | O_CREAT | O_WRONLY | O_NONBLOCK, 0o600)
  if (fstatSync(fd).isFile()) return fd
  closeSync(fd)
  throw Object.assign(new Error('no file'), { code: 'not a regular file' })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
}
