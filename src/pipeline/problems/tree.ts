export type Path = readonly (string | number)[]
export type Mapping = { readonly [key: string]: unknown }
type Container = Mapping | readonly unknown[]

/** A file that a pipeline is made of. */
export type ParsedFile = {
  readonly file: string
  /** Relative paths in it start from its folder. */
  readonly path: string
  /** null: it has no lines, because a program made it. */
  readonly lineAt: ((offset: number) => { readonly line: number; readonly col: number }) | null
  /** Plain values; undefined where {@link faults} tell why there are none. */
  readonly root: unknown
  /** What is wrong with the file as YAML, with the offset of each. */
  readonly faults: readonly (readonly [offset: number, text: string])[]
  /** The offsets of the key (in a list: of the value) and the value at a path; null: it has no such path. */
  readonly find: (path: Path) => Offsets | null
}

/** Where a key and its value stand in a file. */
export type Offsets = { readonly key: number; readonly value: number }

/** The location of an offset for messages: `acme.yaml:3:5`. */
export function lineOf({ file, lineAt }: ParsedFile, offset: number): string {
  if (lineAt === null) return file
  const { line, col } = lineAt(offset)
  return `${file}:${line}:${col}`
}

/** The origin of a value, for messages. */
export type Location =
  | {
      readonly from: 'file'
      readonly source: ParsedFile
      /** Offsets of the key (of the value itself in a list) and of the value. */
      readonly key: number
      readonly value: number
    }
  | { readonly from: 'flag'; readonly flag: string }

/** The values of a pipeline file with those that it inherits and those of flags, and where they come from. */
export type Tree = {
  readonly root: unknown
  /** The pipeline file itself, then the files that it extends: those before override those after. */
  readonly sources: readonly [ParsedFile, ...ParsedFile[]]
  /** The flag of each path that one sets, by {@link keyOf} the path. */
  readonly flags: ReadonlyMap<string, string>
  /** What values were made from, by {@link keyOf} their path. */
  readonly variables: ReadonlyMap<string, Origin>
}

/** The variables that a value was made from, which are never shown, and whether it was one reference and nothing else. */
export type Origin = { readonly names: readonly string[]; readonly isWhole: boolean }

export function keyOf(path: Path): string {
  return JSON.stringify(path)
}

export function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

export function isMapping(value: unknown): value is Mapping {
  return isContainer(value) && !Array.isArray(value)
}

/** The value at a path below another, or undefined. */
export function valueAt(root: unknown, path: Path): unknown {
  let value = root
  for (const key of path) {
    if (!isContainer(value) || !Object.hasOwn(value, key)) return undefined
    value = Reflect.get(value, key)
  }
  return value
}

/** The values with another at a path. Mappings that are missing on the way are made. */
export function withValue(root: unknown, path: Path, value: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  const copy = Array.isArray(root) ? [...root] : { ...(root as object) }
  define(copy, key, withValue(valueAt(root, [key]), rest, value))
  return copy
}

/** Sets a member, also one with a name that objects inherit. */
export function define(container: object, key: string | number, value: unknown): void {
  Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true })
}

/** The location of a path, or of its nearest parent that has one; null at the top of the file. */
export function locationAt(
  { sources, flags }: Pick<Tree, 'sources' | 'flags'>,
  path: Path,
): { readonly location: Location | null; readonly exact: boolean } {
  for (let length = path.length; length > 0; length--) {
    const part = path.slice(0, length)
    const exact = length === path.length
    const flag = flags.get(keyOf(part))
    if (flag !== undefined) return { location: { from: 'flag', flag }, exact }
    for (const source of sources) {
      const found = source.find(part)
      if (found !== null) return { location: { from: 'file', source, ...found }, exact }
    }
  }
  return { location: null, exact: path.length === 0 }
}

/** `extract.queries[3].fqdn` */
export function dotted(path: Path): string {
  return path.map((key, i) => (typeof key === 'number' ? `[${key}]` : i === 0 ? key : `.${key}`)).join('')
}
