/** The code asks for the rules of a resource, never for its name. */
type Rules = {
  /** `search`: by queries and windows, for searches. `list`: as it is. `feed`: to its end, next time from there. */
  readonly reading: 'search' | 'list' | 'feed'
  /** What its rows are: the name of their folder, of their view and by default of their table. Resources may share it. */
  readonly rows: string
  /** What a row stands for, for comments in warehouses. */
  readonly each: string
  /** Whether rows hold identities and secrets, which the policies mask. */
  readonly holdsPeople: boolean
  /** Maximum number of items of a page where the pipeline file sets none. */
  readonly pageSize: number
  /** Keys of `service` that hold its addresses; of a feed: that of the tenant, then that of an identifier if there is one. */
  readonly addresses: readonly string[]
  /** Optional fields that `extract.include` may name; null: any. */
  readonly optional: readonly string[] | null
}

/** Source of the page sizes: the public documentation. It names none for a feed. */
const RESOURCES = {
  credentials: {
    reading: 'search',
    rows: 'credentials',
    each: 'leaked credential and query',
    holdsPeople: true,
    pageSize: 10_000,
    addresses: ['search_path'],
    optional: null,
  },
  reports: {
    reading: 'list',
    rows: 'reports',
    each: 'threat-flow report',
    holdsPeople: false,
    pageSize: 10,
    addresses: ['report_path'],
    optional: [],
  },
  feed: {
    reading: 'feed',
    rows: 'credentials',
    each: 'leaked credential and query',
    holdsPeople: true,
    pageSize: 100,
    addresses: ['feed_path', 'identifier_feed_path'],
    optional: ['known_password_id'],
  },
} as const satisfies Record<string, Rules>

export type Resource = keyof typeof RESOURCES
export type RowKind = (typeof RESOURCES)[Resource]['rows']
export type AddressKey = (typeof RESOURCES)[Resource]['addresses'][number]

export type ResourceRules = Omit<Rules, 'addresses'> & { readonly addresses: readonly AddressKey[] }

export const RESOURCE_NAMES = Object.keys(RESOURCES) as [Resource, ...Resource[]]
export const ADDRESS_KEYS = RESOURCE_NAMES.flatMap((name) => rulesOf(name).addresses)

export const ROW_FOLDERS: readonly string[] = [...new Set(RESOURCE_NAMES.map(kindOfRows))]

export function rulesOf(resource: Resource): ResourceRules {
  return RESOURCES[resource]
}

export function kindOfRows(resource: Resource): RowKind {
  return RESOURCES[resource].rows
}

/** The second search: the public documentation assigns it no tier and no quota. */
const SECOND_SEARCH = /\/astp\/v2\/credentials\/_search\/?$/

/** @param path of the search, or its whole address without a query string */
export function isSecondSearch(path: string): boolean {
  return SECOND_SEARCH.test(path)
}
