import { createSecretKey } from 'node:crypto'
import { ExportError, locationOf, numberOf, type Pipeline, rulesOf } from '../../core/index.ts'
import { foldIdentity, identityHider, suppressionDigest } from '../../transform/index.ts'

/** The people that are to be forgotten, by their identities. */
export class People {
  /** Identities, folded: one for each of them. */
  readonly #folded: ReadonlySet<string>
  /** How files hold them: folded as well, or as digests. */
  readonly #stored: ReadonlySet<string>
  readonly #isMasked: boolean
  /** How files would hold each line with an address and more: of a mail, of a CSV file. */
  readonly #unlikely: readonly (readonly string[])[]
  readonly #found = new Set<string>()

  private constructor(
    lines: readonly string[],
    isMasked: boolean,
    formsOf: (line: string) => readonly string[],
  ) {
    this.#folded = new Set(lines.map(foldIdentity))
    this.#stored = new Set(lines.flatMap(formsOf))
    this.#isMasked = isMasked
    this.#unlikely = lines.filter((line) => MORE_THAN_AN_ADDRESS.test(line.trim())).map(formsOf)
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
    const named = lines.filter((line) => foldIdentity(line) !== '')
    if (identity === 'keep') return new People(named, false, (line) => [foldIdentity(line)])
    // A digest shows nothing of the spelling: of each identity these are looked for.
    const hide = identityHider({ identity, maskKey })
    return new People(named, true, (line) => [line, line.trim(), foldIdentity(line)].map(hide))
  }

  get count(): number {
    return this.#folded.size
  }

  /** What to look for by bloom filters; null: spellings differ, so these say nothing. */
  get exact(): ReadonlySet<string> | null {
    return this.#isMasked ? this.#stored : null
  }

  /** @param stored an identity as files hold it; anything else is nobody's */
  has(stored: unknown): boolean {
    if (typeof stored !== 'string') return false
    const form = this.#isMasked ? stored : foldIdentity(stored)
    if (!this.#stored.has(form)) return false
    this.#found.add(form)
    return true
  }

  /** What to correct in lines of which nothing was found. */
  hints(): readonly string[] {
    const lines = this.#unlikely.filter((forms) => !forms.some((form) => this.#found.has(form))).length
    if (lines === 0) return []
    return [
      `${numberOf(lines, 'line')} with more than an address (angle brackets, quotes, commas, blanks) matched nobody: give the address alone.`,
    ]
  }

  /** Whether a text that is not masked names one of them. @param partly also if it is a part of an identity */
  isNamedBy(text: string, partly = false): boolean {
    const folded = foldIdentity(text)
    if (this.#folded.has(folded)) return true
    return partly && folded !== '' && [...this.#folded].some((each) => each.includes(folded))
  }

  digests(key: Uint8Array): readonly string[] {
    const once = createSecretKey(key)
    return [...this.#folded].map((identity) => suppressionDigest(once, identity))
  }
}

const MORE_THAN_AN_ADDRESS = /[<>",;\s].*@|@.*[<>",;\s]/
