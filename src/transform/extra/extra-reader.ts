import {
  type ExtraField,
  type IdentityPolicy,
  LEFT_OUT,
  repeatsGiven,
  type SecretPolicy,
} from '../../core/index.ts'
import type { ColumnValue } from '../columns/value-columns.ts'
import type { SourceExtras } from '../scan/item-walker.ts'
import { OPEN_BRACE } from '../scan/json-steps.ts'
import { CREDENTIAL_FIELDS, SOURCE_FIELDS } from '../schema.ts'
import { type ExtraNode, ExtraTree } from './extra-tree.ts'
import { EXPECTED, readExtra } from './read-extra.ts'

/** A longer secret is found at any offset. */
const SHORT = 8

/** What is wrong with a field, in the form of the schema's own issues. */
type ExtraIssue = { readonly path: string[]; readonly message: string }

/** The policies that decide which of a row's own values may not turn up elsewhere. */
type Hidden = { readonly secret: SecretPolicy; readonly identity: IdentityPolicy }

/**
 * Reads the fields of `transform.extra_columns` from the JSON of items, for both decode paths. Of an item it keeps the
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
  /** Whether texts have to be searched for the row's secret and identity. */
  readonly hidesSecret: boolean
  readonly hidesIdentity: boolean

  private readonly own: ExtraTree
  private readonly ofSource: ExtraTree
  private readonly raw: string[]
  private readonly searched: readonly number[]

  constructor(
    private readonly fields: readonly ExtraField[],
    { secret, identity }: Hidden,
  ) {
    this.own = new ExtraTree(fields, (field) => !isOfSource(field))
    this.ofSource = new ExtraTree(fields, isOfSource)
    this.values = fields.map(() => null)
    this.raw = fields.map(() => '')
    this.hasSource = fields.some(isOfSource)
    this.itemFields = new Set([...CREDENTIAL_FIELDS, ...this.own.root.children.map(({ name }) => name)])
    this.sourceFields = new Set([
      ...SOURCE_FIELDS,
      ...this.ofSource.root.children.flatMap(({ children }) => children.map(({ name }) => name)),
    ])
    // Of a documented field it is known what it holds.
    this.searched = fields.flatMap(({ meaning, type }, field) =>
      meaning === null && type !== 'boolean' ? [field] : [],
    )
    this.hidesSecret = this.searched.length > 0 && secret !== 'plaintext'
    this.hidesIdentity = this.searched.length > 0 && identity !== 'keep'
  }

  /** Members of an item that paths begin with, but for its source. */
  get roots(): readonly ExtraNode[] {
    return this.own.root.children
  }

  /** Reads all of the item at `start`. */
  item(bytes: Buffer, start: number): void {
    this.begin()
    if (bytes[start] !== OPEN_BRACE) return
    this.own.members(this.own.root, bytes, start)
    this.read(this.own, bytes)
    if (!this.hasSource) return
    this.ofSource.clear()
    this.ofSource.members(this.ofSource.root, bytes, start)
    this.read(this.ofSource, bytes)
  }

  /** Begins an item that is given member by member. */
  begin(): void {
    this.own.clear()
    this.issues = []
    this.values.fill(null)
  }

  member(root: ExtraNode, bytes: Buffer, start: number, end: number): void {
    this.own.visit(root, bytes, start, end)
  }

  /** Ends it. @param source what {@link source} made of its source; null: it has none */
  end(bytes: Buffer, source: SourceExtras | null): void {
    this.read(this.own, bytes)
    if (source === null) return
    for (const [field, value] of source.values) {
      this.values[field] = value
      this.raw[field] = source.raw[field] ?? ''
    }
  }

  /** The fields of the source at [start, end); null when one of them breaks its type. */
  source(bytes: Buffer, start: number, end: number): SourceExtras | null {
    const [root] = this.ofSource.root.children
    if (root === undefined) return NONE
    this.ofSource.clear()
    this.ofSource.visit(root, bytes, start, end)
    this.issues = []
    this.values.fill(null)
    this.read(this.ofSource, bytes)
    if (this.issues.length > 0) return null
    const values = this.values.map((value, field) => [field, value] as const)
    return {
      values: values.filter(([field]) => isOfSource(this.fields[field]!)),
      raw: [...this.raw],
      unknown: [...this.ofSource.unknown],
    }
  }

  /** Names of unknown fields beside those on the way of paths, in an order that does not depend on the item's. */
  unknown(ofSource: readonly string[]): readonly string[] {
    if (this.own.unknown.size === 0 && ofSource.length === 0) return ofSource
    return [...this.own.unknown, ...ofSource].sort()
  }

  /** Those of the source of the item that {@link item} has read. */
  get unknownOfSource(): readonly string[] {
    return [...this.ofSource.unknown]
  }

  /** Takes the row's own secret and identity out of the values; null: there is none, or it is shown anyway. */
  hide(secret: string | null, identity: string | null): void {
    const secrets = [secret, identity].filter((text) => text !== null && text !== '') as string[]
    if (secrets.length === 0) return
    for (const field of this.searched) {
      const value = this.values[field]!
      if (value === null) continue
      this.values[field] = withoutSecrets(this.fields[field]!.type, value, this.raw[field]!, secrets)
    }
  }

  private read(tree: ExtraTree, bytes: Buffer): void {
    for (const path of tree.inTheWay()) {
      // Of the source itself the schema says it.
      if (path.length > 1 || path[0] !== 'source') this.issues.push({ path: [...path], message: IN_THE_WAY })
    }
    for (let field = 0; field < this.fields.length; field++) {
      const end = tree.ends[field]!
      if (end === 0) continue
      const { type, path } = this.fields[field]!
      const start = tree.starts[field]!
      const value = readExtra(type, bytes, start, end)
      if (value === undefined) this.issues.push({ path: [...path], message: EXPECTED[type] })
      else this.values[field] = value
      if (type === 'int64') this.raw[field] = bytes.toString('latin1', start, end)
      else if (type === 'timestamp') this.raw[field] = bytes.toString('utf8', start + 1, end - 1)
    }
  }
}

const IN_THE_WAY = 'Invalid input: expected object'
const NONE: SourceExtras = { values: [], raw: [], unknown: [] }

function isOfSource({ path }: ExtraField): boolean {
  return path[0] === 'source'
}

/** A value of which the row's own secrets have been taken out: texts that repeat one are left out as a whole. */
function withoutSecrets(
  type: ExtraField['type'],
  value: ColumnValue,
  raw: string,
  secrets: readonly string[],
): ColumnValue {
  switch (type) {
    case 'string':
      return secrets.some((secret) => repeatsGiven(value as string, secret)) ? LEFT_OUT : value
    case 'json':
      return secrets.some((secret) => jsonRepeats(value as string, secret)) ? JSON.stringify(LEFT_OUT) : value
    case 'int64':
    case 'timestamp':
      // Such a column can hold no other text.
      return secrets.includes(raw) ? null : value
    case 'boolean':
    case 'strings':
      return value
  }
}

/** A short secret counts only as a whole text, so every scalar and name is held against it by itself. */
function jsonRepeats(json: string, secret: string): boolean {
  if (repeatsGiven(json, secret)) return true
  return secret.length < SHORT && scalars(JSON.parse(json)).includes(secret)
}

/** Without recursion: nesting has no limit. */
function scalars(root: unknown): readonly string[] {
  const texts: string[] = []
  const waiting = [root]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (typeof node !== 'object' || node === null) texts.push(String(node))
    else if (Array.isArray(node)) for (const inner of node) waiting.push(inner)
    else
      for (const [name, inner] of Object.entries(node)) {
        texts.push(name)
        waiting.push(inner)
      }
  }
  return texts
}
