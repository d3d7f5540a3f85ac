import type { ExtraField } from '../../core/index.ts'
import { eachMember, isKey, OPEN_BRACE } from '../scan/json-steps.ts'
import { fieldName } from '../schema.ts'

/** `null` begins with it. */
const NULL = 0x6e

/** A member that lies on the way of a path, or at its end. */
export type ExtraNode = {
  readonly name: string
  /** The name in UTF-8. */
  readonly written: Buffer
  /** As messages show it: `details.severity`. */
  readonly path: readonly string[]
  /** Fields that end here, by their number. */
  readonly fields: number[]
  readonly children: ExtraNode[]
}

/** Finds the values that paths lead to in the JSON of items. Serves one item at a time. */
export class ExtraTree {
  /** By field number: offsets of the value; `ends` is 0 where there is none, or null. */
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  readonly root: ExtraNode = node([])
  /** Fields beside the paths, which no column reads: their names as they may be shown. */
  readonly unknown = new Set<string>()
  /** Where there is a value other than an object although a path continues. */
  readonly inTheWay = new Set<ExtraNode>()

  /** @param isWanted whether a field is one of this tree's */
  constructor(fields: readonly ExtraField[], isWanted: (field: ExtraField) => boolean) {
    this.starts = new Uint32Array(fields.length)
    this.ends = new Uint32Array(fields.length)
    for (const [field, { path }] of fields.entries()) {
      if (!isWanted(fields[field]!)) continue
      let at = this.root
      for (const [depth, name] of path.entries()) {
        let child = at.children.find((candidate) => candidate.name === name)
        if (child === undefined) {
          child = node(path.slice(0, depth + 1))
          at.children.push(child)
        }
        at = child
      }
      at.fields.push(field)
    }
  }

  clear(): void {
    this.unknown.clear()
    this.#forget(this.root)
  }

  /** Takes the value of a member. The last one of a name counts, as in JSON.parse. */
  visit(at: ExtraNode, bytes: Buffer, start: number, end: number): void {
    this.#forget(at)
    if (bytes[start] === NULL) return
    for (const field of at.fields) {
      this.starts[field] = start
      this.ends[field] = end
    }
    if (at.children.length === 0) return
    if (bytes[start] === OPEN_BRACE) this.members(at, bytes, start)
    else this.inTheWay.add(at)
  }

  /** Goes through the object at `start`. */
  members(at: ExtraNode, bytes: Buffer, start: number): void {
    const { children } = at
    eachMember(bytes, start, (key, keyEnd, value, valueEnd) => {
      for (const child of children) {
        if (isKey(bytes, key, keyEnd, child.name, child.written))
          return this.visit(child, bytes, value, valueEnd)
      }
      if (this.#isCounted(at)) {
        const name: string = JSON.parse(bytes.toString('utf8', key, keyEnd))
        this.unknown.add(fieldName(`${at.path.join('.')}.`, name))
      }
    })
  }

  /** The item and its source have known fields beside; what lies in a field that is taken as a whole is not unknown. */
  #isCounted({ path, fields }: ExtraNode): boolean {
    return fields.length === 0 && (path.length > 1 || (path.length === 1 && path[0] !== 'source'))
  }

  #forget(at: ExtraNode): void {
    this.inTheWay.delete(at)
    for (const field of at.fields) this.ends[field] = 0
    for (const child of at.children) this.#forget(child)
  }
}

function node(path: readonly string[]): ExtraNode {
  const name = path.at(-1) ?? ''
  return { name, written: Buffer.from(name), path, fields: [], children: [] }
}
