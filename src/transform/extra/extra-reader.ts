import type { ExtraField } from '../../core/index.ts'
import type { ColumnValue } from '../columns/value-columns.ts'
import type { OwnSecret } from '../own-secret/own-secret.ts'
import { OPEN_BRACE } from '../scan/json-steps.ts'
import { CREDENTIAL_FIELDS, SOURCE_FIELDS } from '../schema.ts'
import { type ExtraNode, ExtraTree } from './extra-tree.ts'
import { EXPECTED, readExtra } from './read-extra.ts'

/** What is wrong with a field, in the form of the schema's own issues. */
type ExtraIssue = { readonly path: string[]; readonly message: string }

/** Values of additional columns that a source gives to its rows. */
export type SourceExtras = {
  /** By field number. */
  readonly values: readonly (readonly [field: number, value: ColumnValue])[]
  /** By field number: digits and times as they are written. */
  readonly raw: readonly string[]
  /** Names of unknown fields inside those on the way. */
  readonly unknown: readonly string[]
}

/**
 * Reads the fields of `transform.extra_columns` from the JSON of items. Of an item it keeps the
 * values until the next one; a field that is missing or null is null.
 */
export class ExtraReader {
  /** By field number. */
  readonly values: ColumnValue[]
  issues: ExtraIssue[] = []
  /** Names of fields that are no news, at the top of an item and of its source. */
  readonly itemFields: ReadonlySet<string>
  readonly sourceFields: ReadonlySet<string>
  /** Whether fields of the source are among them. */
  readonly hasSource: boolean
  /** Whether there are fields of which nobody knows what they hold. */
  readonly areUnknown: boolean
  readonly #own: ExtraTree
  readonly #ofSource: ExtraTree
  readonly #raw: string[]
  readonly #fields: readonly ExtraField[]

  constructor(fields: readonly ExtraField[]) {
    this.#fields = fields
    this.#own = new ExtraTree(fields, (field) => !isOfSource(field))
    this.#ofSource = new ExtraTree(fields, isOfSource)
    this.values = fields.map(() => null)
    this.#raw = fields.map(() => '')
    this.hasSource = fields.some(isOfSource)
    this.itemFields = new Set([...CREDENTIAL_FIELDS, ...this.#own.root.children.map(({ name }) => name)])
    this.sourceFields = new Set([
      ...SOURCE_FIELDS,
      ...this.#ofSource.root.children.flatMap(({ children }) => children.map(({ name }) => name)),
    ])
    this.areUnknown = fields.some(({ meaning }) => meaning === null)
  }

  /** Members of an item that paths begin with, but for its source. */
  get roots(): readonly ExtraNode[] {
    return this.#own.root.children
  }

  /** Reads all of the item at `start`. */
  item(bytes: Buffer, start: number): void {
    this.begin()
    if (bytes[start] !== OPEN_BRACE) return
    this.#own.members(this.#own.root, bytes, start)
    this.#read(this.#own, bytes)
    if (!this.hasSource) return
    this.#ofSource.clear()
    this.#ofSource.members(this.#ofSource.root, bytes, start)
    this.#read(this.#ofSource, bytes)
  }

  /** Begins an item that is given member by member. */
  begin(): void {
    this.#own.clear()
    this.issues = []
    this.values.fill(null)
  }

  member(root: ExtraNode, bytes: Buffer, start: number, end: number): void {
    this.#own.visit(root, bytes, start, end)
  }

  /** Ends it. @param source what {@link source} made of its source; null: it has none */
  end(bytes: Buffer, source: SourceExtras | null): void {
    this.#read(this.#own, bytes)
    if (source === null) return
    for (const [field, value] of source.values) {
      this.values[field] = value
      this.#raw[field] = source.raw[field] ?? ''
    }
  }

  /** The fields of the source at [start, end); null when one of them breaks its type. */
  source(bytes: Buffer, start: number, end: number): SourceExtras | null {
    const [root] = this.#ofSource.root.children
    if (root === undefined) return NONE
    this.#ofSource.clear()
    this.#ofSource.visit(root, bytes, start, end)
    this.issues = []
    this.values.fill(null)
    this.#read(this.#ofSource, bytes)
    if (this.issues.length > 0) return null
    const values = this.values.map((value, field) => [field, value] as const)
    return {
      values: values.filter(([field]) => isOfSource(this.#fields[field]!)),
      raw: [...this.#raw],
      unknown: [...this.#ofSource.unknown],
    }
  }

  /** Names of unknown fields beside those on the way of paths, in an order that does not depend on the item's. */
  unknown(ofSource: readonly string[]): readonly string[] {
    if (this.#own.unknown.size === 0 && ofSource.length === 0) return ofSource
    return [...this.#own.unknown, ...ofSource].sort()
  }

  /** Those of the source of the item that {@link item} has read. */
  get unknownOfSource(): readonly string[] {
    return [...this.#ofSource.unknown]
  }

  /** Masks the row's own secret and identity in the values; null: there is none, or it is shown anyway. */
  hide(secret: OwnSecret | null, identity: OwnSecret | null): void {
    if (secret === null && identity === null) return
    for (const [field, { type, meaning, path }] of this.#fields.entries()) {
      // Of a documented field it is known that it holds no identity.
      for (const own of meaning === null ? [secret, identity] : [secret]) {
        const value = this.values[field]!
        if (value === null || own === null) continue
        const isOfSource = meaning !== null && path[0] === 'source'
        this.values[field] = own.maskedInValue(value, type, this.#raw[field]!, isOfSource)
      }
    }
  }

  #read(tree: ExtraTree, bytes: Buffer): void {
    for (const { path } of tree.inTheWay) {
      // Of the source itself the schema says it.
      if (path.length > 1 || path[0] !== 'source') this.issues.push({ path: [...path], message: IN_THE_WAY })
    }
    for (let field = 0; field < this.#fields.length; field++) {
      const end = tree.ends[field]!
      if (end === 0) continue
      const { type, path } = this.#fields[field]!
      const start = tree.starts[field]!
      const value = readExtra(type, bytes, start, end)
      if (value === undefined) this.issues.push({ path: [...path], message: EXPECTED[type] })
      else this.values[field] = value
      if (type === 'int64') this.#raw[field] = bytes.toString('latin1', start, end)
      else if (type === 'timestamp') this.#raw[field] = bytes.toString('utf8', start + 1, end - 1)
    }
  }
}

const IN_THE_WAY = 'Invalid input: expected object'
const NONE: SourceExtras = { values: [], raw: [], unknown: [] }

function isOfSource({ path }: ExtraField): boolean {
  return path[0] === 'source'
}
