export type Path = readonly (string | number)[]
export type Mapping = { readonly [key: string]: unknown }
type Container = Mapping | readonly unknown[]

export type Source = {
  readonly file: string
  /** Relative paths in it start from its folder. */
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

/** Where a member of a mapping or a list comes from, for messages. */
export type Location =
  | {
      readonly from: 'file'
      readonly source: Source
      /** Offsets of the key (of the value itself in a list) and of the value. */
      readonly key: number
      readonly value: number
      /** The variables that the value was made from, which are never shown; if there is a reference in it. */
      readonly names?: readonly string[]
      /** Whether it was one reference and nothing else. */
      readonly isWhole?: boolean
    }
  | { readonly from: 'flag'; readonly flag: string }

/** As messages name it: `acme.yaml:3:5`, or a flag. */
export function whereIs(location: Location): string {
  return location.from === 'flag' ? location.flag : lineOf(location.source, location.key)
}

export type Locations = ReadonlyMap<string | number, Location>

/** The values of a pipeline file with those that it inherits and those of flags. */
export type Tree = {
  readonly root: unknown
  /** The pipeline file itself, then the files that it extends: those before override those after. */
  readonly sources: readonly [Source, ...Source[]]
}

const LOCATIONS = new WeakMap<object, Locations>()

/** A mapping or list whose members come from these locations. */
export function located<Value extends object>(container: Value, locations: Locations): Value {
  LOCATIONS.set(container, locations)
  return container
}

export function locationsIn(value: unknown): Locations {
  return (isContainer(value) ? LOCATIONS.get(value) : undefined) ?? new Map()
}

/** The location of a path, or of its nearest parent that has one; null at the top of the file. */
export function locationAt(
  { root }: Tree,
  path: Path,
): { readonly location: Location | null; readonly exact: boolean } {
  let location: Location | null = null
  let exact = true
  for (const [i, key] of path.entries()) {
    const found = locationsIn(valueAt(root, path.slice(0, i))).get(key)
    exact = found !== undefined
    location = found ?? location
  }
  return { location, exact }
}

/** The variables that the value at a path was made from. */
export function namesAt(tree: Tree, path: Path): readonly string[] {
  const { location, exact } = locationAt(tree, path)
  return (exact && location?.from === 'file' && location.names) || []
}

export function keyOf(path: Path): string {
  return JSON.stringify(path)
}

export function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

export function isMapping(value: unknown): value is Mapping {
  return isContainer(value) && !Array.isArray(value)
}

export function valueAt(root: unknown, path: Path): unknown {
  let value = root
  for (const key of path) {
    if (!isContainer(value) || !Object.hasOwn(value, key)) return undefined
    value = Reflect.get(value, key)
  }
  return value
}

/** The values with another at a path, and the location of what was not there. Mappings that are missing are made. */
export function withValue(root: unknown, path: Path, value: unknown, location?: Location): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  const inner = valueAt(root, [key])
  const copy = Array.isArray(root) ? [...root] : { ...(root as object) }
  define(copy, key, withValue(inner, rest, value, location))
  const isNew = location !== undefined && (inner === undefined || rest.length === 0)
  return located(copy, isNew ? new Map(locationsIn(root)).set(key, location) : locationsIn(root))
}

/** Sets a member, also one with a name that objects inherit. */
export function define(container: object, key: string | number, value: unknown): void {
  Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true })
}

/** `extract.queries[3].fqdn` */
export function dotted(path: Path): string {
  return path.map((key, i) => (typeof key === 'number' ? `[${key}]` : i === 0 ? key : `.${key}`)).join('')
}
