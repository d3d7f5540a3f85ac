import { createSecretKey } from 'node:crypto'
import { IDENTITY_POLICIES, linesText, type Pipeline } from '../../../core/index.ts'
import { filedIdentity, identityHider, suppressionDigest } from '../../../transform/index.ts'
import { identitiesIn, requireIdentities } from '../match/identities.ts'

export class People {
  /** Normal forms, by which they are kept out: of their identities, and of lines with more as they stand. */
  readonly #forms: ReadonlySet<string>
  /** How files hold them: these forms, or their digests. */
  readonly #stored: ReadonlySet<string>
  readonly #isMasked: boolean
  readonly #count: number
  /** How files would hold each line of which something could not be read, by the number of the line. */
  readonly #unread: ReadonlyMap<number, string>
  /** The numbers of lines with several identities, or with words around one. */
  readonly #withMore: readonly number[]
  readonly #found = new Set<string>()

  private constructor(lines: readonly string[], isMasked: boolean, storedForm: (line: string) => string) {
    const unread = new Map<number, string>()
    const all = new Set<string>()
    const read = new Set<string>()
    const withMore: number[] = []
    for (const [i, line] of lines.entries()) {
      if (filedIdentity(line) === '') continue
      const identities = identitiesIn(line)
      if (identities.unread > 0) unread.set(i + 1, storedForm(line))
      for (const identity of identities.found) read.add(filedIdentity(identity))
      const words = line.split(/[\s;,|]+/).filter((word) => /[\p{L}\p{N}]/u.test(word))
      if (identities.found.length > 0 && words.length > 1) withMore.push(i + 1)
      // A row may hold the whole line.
      for (const identity of [line, ...identities.found]) all.add(identity)
    }
    this.#forms = new Set([...all].map(filedIdentity))
    this.#stored = new Set([...all].map(storedForm))
    this.#isMasked = isMasked
    this.#count = read.size
    this.#unread = unread
    this.#withMore = withMore
  }

  /** Empty lines have a number, too. @throws ExportError `config` when the data set holds no identities */
  static of(lines: readonly string[], pipeline: Pipeline, maskKey: Uint8Array | null): People {
    requireIdentities(pipeline, 'Nothing needs to be erased here by identity.')
    const { identity } = pipeline.transform
    return IDENTITY_POLICIES[identity].shows
      ? new People(lines, false, filedIdentity)
      : new People(lines, true, identityHider({ identity, maskKey }))
  }

  /** Different identities, and lines that turned out to be some. */
  get count(): number {
    return this.#count + new Set([...this.#unread.values()].filter((form) => this.#found.has(form))).size
  }

  /** @param stored an identity as files hold it; anything else is nobody's */
  has(stored: unknown): boolean {
    if (typeof stored !== 'string') return false
    const form = this.#isMasked ? stored : filedIdentity(stored)
    if (!this.#stored.has(form)) return false
    this.#found.add(form)
    return true
  }

  hints(): readonly string[] {
    const unread = [...this.#unread].filter(([, form]) => !this.#found.has(form)).map(([number]) => number)
    return [
      ...named(unread, 'No identity, or more than that', 'Give the address alone.'),
      ...named(this.#withMore, 'Each address of a line is one of theirs, whatever stands around it', ''),
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

function named(lines: readonly number[], what: string, next: string): readonly string[] {
  return lines.length === 0 ? [] : [`${what}: ${linesText(lines)}. ${next}`.trim()]
}
