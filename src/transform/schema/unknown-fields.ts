/** Names per page; what comes beyond is counted together. */
const MAX_NAMES = 50
const MAX_NAME_LENGTH = 100
const REST = '…'

/** Counts fields that nobody knows, by name. */
export class UnknownFields {
  private readonly counts = new Map<string, number>()

  /** @param name as {@link fieldName} makes it */
  count(name: string): void {
    const isFull = this.counts.size >= MAX_NAMES && !this.counts.has(name)
    const key = isFull ? REST : name
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1)
  }

  record(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.counts)
  }
}

/** A field's name as it may be shown: the service gives it, so it may hold anything. */
export function fieldName(prefix: string, name: string): string {
  const printable = name.slice(0, 10 * MAX_NAME_LENGTH).replace(/\p{Cc}/gu, '')
  return (prefix + printable).slice(0, MAX_NAME_LENGTH).toWellFormed()
}

/** Names of the own fields of an object that are not among the known. */
export function unknownNames(value: object, known: ReadonlySet<string>): readonly string[] {
  const names: string[] = []
  for (const name in value) if (!known.has(name)) names.push(name)
  return names
}
