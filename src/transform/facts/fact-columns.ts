import type { SecretFacts } from '../../core/index.ts'
import type { Column, Group } from '../../rows/index.ts'
import { BooleanList, IndexList } from '../columns/lists.ts'
import { addGroup } from '../columns/text-columns.ts'
import { type FieldRun, STATE, textVector } from '../columns/text-list.ts'
import { unescapeJson } from '../columns/unescape-json.ts'
import { saysDigest } from './digest-forms.ts'
import { type FactsOf, PLAIN_THAT_MEETS, SECRET_KINDS, secretFacts } from './secret-facts.ts'

/** The number of a row without a secret. */
const NONE = PLAIN_THAT_MEETS + 1

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
    const { states, starts, ends } = run
    const bytes = run.bytes as Buffer
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
    if (name === 'secret_meets_policy') return { name, group: null, values: this.#meets.vector() }
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
  const [start, end] = [starts[row]!, ends[row]!]
  if (states[row] !== STATE.escapedText) return (bytes as Buffer).toString('utf8', start, end)
  return JSON.parse((bytes as Buffer).toString('utf8', start - 1, end + 1)) as string
}
