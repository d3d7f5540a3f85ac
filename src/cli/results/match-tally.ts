import type { Directory, Match, Matches } from '../../data-set/index.ts'
import { styleFor } from '../terminal/screen.ts'
import { alignedTable, resultTable } from '../terminal/table.ts'
import { count, counted } from '../terminal/text.ts'

type Person = {
  credentials: number
  first: string
  last: string
  readonly sources: Set<string>
  /** Plain secrets that the policy allows. */
  allowed: number
}

export class MatchTally {
  readonly #people = new Map<number, Person>()
  readonly #sources = new Set<string>()
  #credentials = 0
  readonly #directory: Directory
  readonly #importedAt: number
  readonly #source: number
  readonly #name: number
  readonly #meets: number

  constructor(directory: Directory, { columns, matches }: Matches) {
    this.#directory = directory
    this.#importedAt = columns.indexOf('imported_at', 2)
    this.#source = columns.indexOf('source_id', 2)
    this.#name = columns.indexOf('source_name', 2)
    this.#meets = columns.indexOf('secret_meets_policy', 2)
    for (const each of matches) this.#add(each)
  }

  #add({ person, cells }: Match): void {
    const found = this.#people.get(person) ?? newPerson()
    this.#people.set(person, found)
    this.#credentials++
    found.credentials++
    const at = String(cells[this.#importedAt] ?? '')
    if (found.first === '' || at < found.first) found.first = at
    if (at > found.last) found.last = at
    const source = cells[this.#source]
    if (source != null) this.#sources.add(String(source))
    const name = cells[this.#name] ?? source
    if (name != null) found.sources.add(String(name))
    if (cells[this.#meets] === true) found.allowed++
  }

  table(): Iterable<string> {
    const hasFacts = this.#meets >= 0
    const facts = hasFacts ? ['meets policy'] : []
    const header = [this.#directory.key, 'credentials', ...facts, 'first', 'last', 'sources']
    const rows = [...this.#people].map(([person, { credentials, allowed, first, last, sources }]) => [
      this.#directory.people[person],
      credentials,
      ...(hasFacts ? [allowed] : []),
      first.slice(0, 10),
      last.slice(0, 10),
      shortList([...sources].sort()),
    ])
    return rows.length === 0 ? [] : alignedTable(resultTable(header, rows), styleFor(false))
  }

  text(): string {
    const people = `${count(this.#people.size)} of ${counted(this.#directory.people.length, 'person', 'people')}`
    const sources = this.#source < 0 ? '' : ` from ${counted(this.#sources.size, 'source')}`
    const allowed = [...this.#people.values()].filter((person) => person.allowed > 0).length
    const facts = this.#meets < 0 ? '' : `; ${count(allowed)} with a password that the policy allows`
    return `${people}: ${counted(this.#credentials, 'credential')}${sources}${facts}`
  }
}

function shortList(names: readonly string[]): string {
  const more = names.length > MAX_SOURCES ? [`and ${count(names.length - MAX_SOURCES)} more`] : []
  return [...names.slice(0, MAX_SOURCES), ...more].join(', ')
}

const MAX_SOURCES = 3

function newPerson(): Person {
  return { credentials: 0, first: '', last: '', sources: new Set(), allowed: 0 }
}
