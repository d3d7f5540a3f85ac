import { createSecretKey } from 'node:crypto'
import { ExportError, locationOf, type Pipeline, rulesOf } from '../../core/index.ts'
import { filedIdentity, identityHider, suppressionDigest } from '../../transform/index.ts'

/** The people that are to be forgotten, by their identities. */
export class People {
  /** Identities in normal form: one for each of them. */
  readonly #forms: ReadonlySet<string>
  /** How files hold them: these forms, or their digests. */
  readonly #stored: ReadonlySet<string>
  readonly #isMasked: boolean
  /** How files would hold each line with an address and more (of a mail, of a CSV file), by the number of the line. */
  readonly #unlikely: ReadonlyMap<number, string>
  readonly #found = new Set<string>()

  private constructor(lines: readonly string[], isMasked: boolean, storedForm: (line: string) => string) {
    const named = lines.filter((line) => filedIdentity(line) !== '')
    this.#forms = new Set(named.map(filedIdentity))
    this.#stored = new Set(named.map(storedForm))
    this.#isMasked = isMasked
    const numbered = lines.map((line, i) => [i + 1, line] as const)
    const unlikely = numbered.filter(([, line]) => MORE_THAN_AN_ADDRESS.test(line.trim()))
    this.#unlikely = new Map(unlikely.map(([number, line]) => [number, storedForm(line)]))
  }

  /**
   * @param lines identities as they were given; empty lines have a number, too
   * @throws ExportError `config` when the data set does not hold identities, so that nobody can be found
   */
  static of(lines: readonly string[], pipeline: Pipeline, maskKey: Uint8Array | null): People {
    const { extract } = pipeline
    const { identity, columns } = pipeline.transform
    if (!rulesOf(extract.resource).holdsPeople || identity === 'drop' || !columns.includes('identity_name')) {
      const key = identity === 'drop' ? 'transform.identity' : 'transform.columns'
      throw new ExportError({
        kind: 'config',
        what: 'The data set holds no identities, so nobody can be found in it',
        where: locationOf(pipeline, key),
        next: 'Nothing needs to be erased here by identity.',
      })
    }
    return identity === 'keep'
      ? new People(lines, false, filedIdentity)
      : new People(lines, true, identityHider({ identity, maskKey }))
  }

  /** Different identities, without lines that turned out to be none. */
  get count(): number {
    return this.#forms.size - new Set(this.#unmatched().map(([, form]) => form)).size
  }

  /** What to look for by bloom filters; null: spellings differ, so these say nothing. */
  get exact(): ReadonlySet<string> | null {
    return this.#isMasked ? this.#stored : null
  }

  /** @param stored an identity as files hold it; anything else is nobody's */
  has(stored: unknown): boolean {
    if (typeof stored !== 'string') return false
    const form = this.#isMasked ? stored : filedIdentity(stored)
    if (!this.#stored.has(form)) return false
    this.#found.add(form)
    return true
  }

  /** What to correct in lines that are no identity. */
  hints(): readonly string[] {
    const numbers = this.#unmatched().map(([number]) => number)
    if (numbers.length === 0) return []
    const named = numbers.slice(0, MAX_LINES_NAMED).join(', ')
    const more = numbers.length > MAX_LINES_NAMED ? `, … (${numbers.length} lines)` : ''
    return [
      `No identity, with more than an address (angle brackets, quotes, commas, blanks): line ${named}${more}. Give the address alone.`,
    ]
  }

  /** Lines with more than an address, of which nothing was found. */
  #unmatched(): readonly (readonly [number: number, form: string])[] {
    return [...this.#unlikely].filter(([, form]) => !this.#found.has(form))
  }

  /** Whether a text that is not masked names one of them. @param partly also if it is a part of an identity */
  isNamedBy(text: string, partly = false): boolean {
    const form = filedIdentity(text)
    if (this.#forms.has(form)) return true
    return partly && form !== '' && [...this.#forms].some((each) => each.includes(form))
  }

  digests(key: Uint8Array): readonly string[] {
    const once = createSecretKey(key)
    return [...this.#forms].map((identity) => suppressionDigest(once, identity))
  }
}

const MAX_LINES_NAMED = 20

const MORE_THAN_AN_ADDRESS = /[<>",;\s].*@|@.*[<>",;\s]/
