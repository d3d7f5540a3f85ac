import { createSecretKey } from 'node:crypto'
import { ExportError, locationOf, numberOf, type Pipeline, rulesOf } from '../../core/index.ts'
import { filedIdentity, identityHider, suppressionDigest } from '../../transform/index.ts'

/** The people that are to be forgotten, by their identities. */
export class People {
  /** Identities in normal form: one for each of them. */
  readonly #forms: ReadonlySet<string>
  /** How files hold them: these forms, or their digests. */
  readonly #stored: ReadonlySet<string>
  readonly #isMasked: boolean
  /** How files would hold each line with an address and more: of a mail, of a CSV file. */
  readonly #unlikely: readonly string[]
  readonly #found = new Set<string>()

  private constructor(lines: readonly string[], isMasked: boolean, storedForm: (line: string) => string) {
    this.#forms = new Set(lines.map(filedIdentity))
    this.#stored = new Set(lines.map(storedForm))
    this.#isMasked = isMasked
    this.#unlikely = lines.filter((line) => MORE_THAN_AN_ADDRESS.test(line.trim())).map(storedForm)
  }

  /**
   * @param lines identities as they were given
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
    const named = lines.filter((line) => filedIdentity(line) !== '')
    return identity === 'keep'
      ? new People(named, false, filedIdentity)
      : new People(named, true, identityHider({ identity, maskKey }))
  }

  get count(): number {
    return this.#forms.size
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

  /** What to correct in lines of which nothing was found. */
  hints(): readonly string[] {
    const lines = this.#unlikely.filter((form) => !this.#found.has(form)).length
    if (lines === 0) return []
    return [
      `${numberOf(lines, 'line')} with more than an address (angle brackets, quotes, commas, blanks) matched nobody: give the address alone.`,
    ]
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

const MORE_THAN_AN_ADDRESS = /[<>",;\s].*@|@.*[<>",;\s]/
