export type Path = readonly (string | number)[]
export type Mapping = { [key: string]: unknown }
export type Container = Mapping | unknown[]

/** A file that a pipeline is made of. */
export type Source = {
  /** Its name for messages. */
  readonly file: string
  /** Its absolute path; relative paths in it start from its folder. */
  readonly path: string
  /** null: it has no lines, because a program made it. */
  readonly lineAt: ((offset: number) => { readonly line: number; readonly col: number }) | null
}

/** The location of an offset for messages: `acme.yaml:3:5`. */
export function lineOf({ file, lineAt }: Source, offset: number): string {
  if (lineAt === null) return file
  const { line, col } = lineAt(offset)
  return `${file}:${line}:${col}`
}

/** The origin of a value, for messages. Values of variables are never shown. */
export type Location =
  | {
      readonly from: 'file'
      readonly source: Source
      /** Offsets of the key (of the value itself in a list) and of the value. */
      readonly key: number
      readonly value: number
      /** Whether it is an unquoted scalar, which YAML may read as another type. */
      readonly plain: boolean
      /** Environment variables that the value was made from. */
      readonly variables: readonly string[]
      /** The value that YAML would read, if the text was one unquoted reference. */
      readonly retyped?: number | boolean | null
    }
  | { readonly from: 'flag'; readonly flag: string }

/** The plain values of a pipeline file, with the location of each. */
export type Tree = {
  /** The pipeline file itself; with `extends`, values may come from others. */
  readonly source: Source
  root: unknown
  /** Locations of the members of every mapping and list. */
  readonly locations: Map<Container, Map<string | number, Location>>
}

export function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

export function isMapping(value: unknown): value is Mapping {
  return isContainer(value) && !Array.isArray(value)
}

/** The value at a path, or undefined. */
export function valueAt(tree: Tree, path: Path): unknown {
  let value = tree.root
  for (const key of path) value = member(value, key)
  return value
}

/** The location of a path, or of its nearest parent that has one; null at the top of the file. */
export function locationAt(
  tree: Tree,
  path: Path,
): { readonly location: Location | null; readonly exact: boolean } {
  let value = tree.root
  let location: Location | null = null
  for (const key of path) {
    const inner = isContainer(value) ? tree.locations.get(value)?.get(key) : undefined
    if (inner === undefined) return { location, exact: false }
    location = inner
    value = member(value, key)
  }
  return { location, exact: true }
}

function member(value: unknown, key: string | number): unknown {
  if (Array.isArray(value)) return typeof key === 'number' ? value[key] : undefined
  return isMapping(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

/** `extract.queries[3].fqdn` */
export function dotted(path: Path): string {
  return path.map((key, i) => (typeof key === 'number' ? `[${key}]` : i === 0 ? key : `.${key}`)).join('')
}
