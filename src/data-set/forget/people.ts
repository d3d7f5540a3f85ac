import { createSecretKey } from 'node:crypto'
import { ExportError, locationOf, type Pipeline, rulesOf } from '../../core/index.ts'
import { foldIdentity, identityHider, suppressionDigest } from '../../transform/index.ts'

/** The people that are to be forgotten, by their identities. */
export class People {
  /** Identities, folded: one for each of them. */
  readonly #folded: ReadonlySet<string>
  /** What stands for them in files where identities are masked; null: they are not. */
  readonly #masked: ReadonlySet<string> | null

  private constructor(folded: ReadonlySet<string>, masked: ReadonlySet<string> | null) {
    this.#folded = folded
    this.#masked = masked
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
    const folded = new Set(lines.map(foldIdentity))
    folded.delete('')
    if (identity === 'keep') return new People(folded, null)
    // A digest shows nothing of the spelling: of each identity these are looked for.
    const spellings = lines.flatMap((line) => [line, line.trim(), foldIdentity(line)])
    return new People(folded, new Set(spellings.map(identityHider({ identity, maskKey }))))
  }

  get count(): number {
    return this.#folded.size
  }

  /** What to look for by bloom filters; null: spellings differ, so these say nothing. */
  get exact(): ReadonlySet<string> | null {
    return this.#masked
  }

  /** @param stored an identity as files hold it; anything else is nobody's */
  has(stored: unknown): boolean {
    if (typeof stored !== 'string') return false
    return this.#masked === null ? this.#folded.has(foldIdentity(stored)) : this.#masked.has(stored)
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
