import type { SecretFacts } from '../../core/index.ts'
import type { Column, Group } from '../../rows/index.ts'
import { BooleanList, IndexList } from '../columns/lists.ts'
import { addGroup } from '../columns/text-columns.ts'
import { textVector } from '../columns/text-list.ts'
import { unescapeJson } from '../columns/unescape-json.ts'
import { STATE } from '../scan/item-fields.ts'
import { type FieldRun, textIn } from '../scan/item-walker.ts'
import { isDigest, saysDigest } from './digest-forms.ts'

/** Values of `secret_kind`, by their numbers here. */
const SECRET_KINDS = ['plain', 'digest', 'empty'] as const

const PLAIN = 0
const DIGEST = 1
const EMPTY = 2
/** Plain secrets that meet the policy have a number of their own, and rows without a secret. */
const PLAIN_THAT_MEETS = 3
const NONE = 4

/** The columns of `transform.secret_facts` under construction, which know secrets before they are masked. */
export class FactColumns {
  readonly #factsOf: FactsOf
  readonly #kinds = new IndexList()
  readonly #meets = new BooleanList()
  /** Kinds of the page in the order in which they came, and their indices by number. */
  readonly #entries: (string | null)[] = []
  readonly #indices = new Int8Array(NONE + 1)
  /** By row of a run: 1 if the type of its secret says that it is a digest. */
  #says = new Uint8Array(0)

  constructor(facts: SecretFacts) {
    this.#factsOf = secretFacts(facts)
    this.reset()
  }

  add(secret: string | null, hashType: string | null): void {
    if (secret === null) this.#add(NONE)
    else {
      const bytes = Buffer.from(secret)
      this.#add(this.#factsOf(bytes, 0, bytes.length, hashType !== null && saysDigest(hashType)))
    }
  }

  /** Adds many rows. @param secret @param hashType fields of the run */
  addRun(run: FieldRun, secret: number, hashType: number): void {
    const { rows } = run
    if (this.#says.length < rows) this.#says = new Uint8Array(rows)
    const says = this.#says
    run.gather(hashType)
    let last = 0
    for (let row = 0; row < rows; row++) {
      const state = run.states[row]
      if (state === STATE.null) says[row] = 0
      else {
        if (state !== STATE.sameText) last = saysDigest(textOf(run, row)) ? 1 : 0
        says[row] = last
      }
    }
    run.gather(secret)
    const { states, starts, ends, bytes } = run
    for (let row = 0; row < rows; row++) {
      const state = states[row]
      if (state === STATE.null) this.#add(NONE)
      else if (state === STATE.escapedText) {
        const text = Buffer.allocUnsafe(ends[row]! - starts[row]!)
        const end = unescapeJson(bytes, starts[row]!, ends[row]!, text, 0)
        this.#add(this.#factsOf(text, 0, end, says[row] === 1))
      } else this.#add(this.#factsOf(bytes, starts[row]!, ends[row]!, says[row] === 1))
    }
  }

  column(name: string, groups: Group[]): Column | undefined {
    if (name === 'secret_meets_policy') return this.#meets.column(name)
    if (name !== 'secret_kind') return undefined
    const group = addGroup(groups, this.#entries.length, this.#kinds.view())
    return { name, group, values: textVector(this.#entries) }
  }

  reset(): void {
    this.#kinds.reset()
    this.#meets.reset()
    this.#entries.length = 0
    this.#indices.fill(-1)
  }

  #add(facts: number): void {
    const kind = facts === PLAIN_THAT_MEETS ? 0 : facts
    if (this.#indices[kind] === -1) this.#indices[kind] = this.#entries.push(SECRET_KINDS[kind] ?? null) - 1
    this.#kinds.add(this.#indices[kind]!)
    this.#meets.add(kind === 0 ? facts === PLAIN_THAT_MEETS : null)
  }
}

function textOf({ states, starts, ends, bytes }: FieldRun, row: number): string {
  return textIn(bytes, starts[row]!, ends[row]!, states[row] === STATE.escapedText)
}

/** What is known of a secret before it is masked: the number of its kind. The secret is the UTF-8 text at [start, end). */
type FactsOf = (bytes: Buffer, start: number, end: number, saysDigest: boolean) => number

function secretFacts({ policy }: SecretFacts): FactsOf {
  const meets = (points: number, classes: number): number =>
    points >= policy.minLength && COUNTS[classes]! >= policy.classes ? PLAIN_THAT_MEETS : PLAIN
  return (bytes, start, end, saysDigest) => {
    if (start === end) return EMPTY
    if (saysDigest || isDigest(bytes, start, end)) return DIGEST
    let found = 0
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!
      if (byte >= 0x80) return meets(...measured(bytes.toString('utf8', start, end)))
      found |= ASCII[byte]!
    }
    return meets(end - start, found)
  }
}

/* Classes of characters, as bits. */
const UPPER = 1
const LOWER = 2
const DIGIT = 4
const OTHER = 8
const CLASSES = UPPER | LOWER | DIGIT | OTHER

/** How many classes are in a set of them. */
const COUNTS = Uint8Array.from(
  { length: CLASSES + 1 },
  (_, set) => set.toString(2).replaceAll('0', '').length,
)

const ASCII = Uint8Array.from({ length: 0x80 }, (_, code) => classOf(String.fromCharCode(code)))

/** As Active Directory counts them, but for letters without a case, which are others here. */
function classOf(character: string): number {
  if (/\p{Lu}/u.test(character)) return UPPER
  if (/\p{Ll}/u.test(character)) return LOWER
  return /[0-9]/.test(character) ? DIGIT : OTHER
}

function measured(text: string): [points: number, classes: number] {
  let points = 0
  let classes = 0
  for (const character of text) {
    points++
    classes |= classOf(character)
  }
  return [points, classes]
}
