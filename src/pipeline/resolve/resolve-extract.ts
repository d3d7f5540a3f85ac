import { dirname, isAbsolute, join, resolve } from 'node:path'
import {
  type ExtractSettings,
  hidesIdentity,
  type IdentityPolicy,
  MAX_WINDOWS,
  type Query,
  queryLabel,
  rulesOf,
  type WindowSettings,
} from '../../core/index.ts'
import { describeDomain, suggestion } from '../problems/describe.ts'
import type { Problems } from '../problems/problems.ts'
import type { Path } from '../problems/tree.ts'
import type { PipelineFile } from '../schema/file-schema.ts'
import { INSTANT } from '../schema/query-schema.ts'
import { DOMAIN_EXPECTED, domainFault, parseDomain } from '../values/addresses.ts'
import { nameQuery, visibleLabel } from '../values/query-names.ts'
import { readText } from '../values/read-text.ts'

type ExtractFile = PipelineFile['extract']
type Report = (text: string) => void

const UNIT_MICROS = { hour: 3_600_000_000, day: 86_400_000_000 } as const
/** Longest name of a file or folder on the file systems in use (NAME_MAX). */
const MAX_FOLDER_BYTES = 255

/** Collects the queries, removes duplicates, checks windows, and fills in the defaults of the resource. */
export async function resolveExtract(settings: PipelineFile, problems: Problems): Promise<ExtractSettings> {
  const { extract, transform, load } = settings
  const { reading, pageSize, optional } = rulesOf(extract.resource)
  const feed = reading === 'feed'
  if (feed) checkFeed(extract, problems)
  if (optional !== null) checkInclude(extract, optional, problems)
  const queries = new Queries(load.partition_by.includes('query'), transform.identity)
  if (reading === 'list') addReports(extract, queries, problems)
  else if (feed) addFeeds(extract, queries, problems)
  else await addCredentials(extract, queries, problems)
  return {
    resource: extract.resource,
    queries: queries.all,
    windows: feed ? feedWindows(extract) : resolveWindows(extract, problems),
    unfiltered: null,
    order: extract.order,
    pageSize: extract.page_size ?? pageSize,
    include: [...new Set(extract.include)],
    concurrency: extract.concurrency,
    maxRequests: extract.max_requests,
    monthlySearches: extract.monthly_searches,
    minSearchesRemaining: extract.min_searches_remaining,
  }
}

function checkFeed(extract: ExtractFile, problems: Problems): void {
  if (extract.order === 'desc') {
    problems.add(['extract', 'order'], 'expected asc, the order in which a feed is read, found desc')
  }
}

/** Where it names none that there is, the whole key is refused. */
function checkInclude(extract: ExtractFile, optional: readonly string[], problems: Problems): void {
  for (const [i, field] of (optional.length === 0 ? [] : (extract.include ?? [])).entries()) {
    if (optional.includes(field)) continue
    const path = ['extract', 'include', i]
    const { resource } = extract
    problems.add(
      path,
      `expected ${optional.join(' or ')}, the optional field of a ${resource}, found ${problems.found(path)}`,
    )
  }
}

/** A placeholder for the first 16 hexadecimal digits of an identity's digest, which depend on the mask key. */
const ANY_DIGEST = '0'.repeat(16)

/** The queries, unique by name: queries of one name would share a folder and a checkpoint. */
class Queries {
  readonly #byName = new Map<string, Query>()
  /** Names by what is requested. */
  readonly #names = new Map<string, string>()
  readonly #inFolders: boolean
  readonly #identity: IdentityPolicy

  constructor(inFolders: boolean, identity: IdentityPolicy) {
    this.#inFolders = inFolders
    this.#identity = identity
  }

  get all(): readonly Query[] {
    return [...this.#byName.values()]
  }

  add(query: Query, report: Report): void {
    const label = visibleLabel(query, this.#identity)
    const asked = `${query.type}.${queryLabel(query)}`
    // The name of a hidden identity is not known yet. Other names have no space.
    const name = label === null ? ` ${asked}` : nameQuery(query, label).name
    const fault = this.#faultOf(query, label, name, asked)
    if (fault !== null) report(fault)
    else {
      this.#byName.set(name, query)
      this.#names.set(asked, name)
    }
  }

  #faultOf(query: Query, label: string | null, name: string, asked: string): string | null {
    if (label === null && this.#identity === 'drop') {
      return `under transform.identity: drop the query needs a name that does not reveal it: add as`
    }
    if (hidesIdentity(query, this.#identity) && label !== null && reveals(query, label)) {
      return `its as reveals what transform.identity: ${this.#identity} hides`
    }
    const bytes = Buffer.byteLength(`query=${nameQuery(query, label ?? ANY_DIGEST).name}`)
    if (this.#inFolders && bytes > MAX_FOLDER_BYTES) {
      return `its folder name, percent-encoded, would have ${bytes} bytes of ${MAX_FOLDER_BYTES}; leave query out of load.partition_by`
    }
    const before = this.#names.get(asked)
    if (before !== undefined && before !== name) return 'the same query already has another name'
    if (before === undefined && this.#byName.has(name)) return 'another query has this name already'
    return null
  }
}

/** A label reveals an address also if it contains it. A keyword may be part of many labels. */
function reveals(query: Query, label: string): boolean {
  const [name, value] = [label.toLowerCase(), queryLabel(query).toLowerCase()]
  return query.type === 'email' ? name.includes(value) : name === value
}

function addReports(extract: ExtractFile, queries: Queries, problems: Problems): void {
  const { ids, all } = extract
  if (ids !== undefined && all === true) {
    problems.add(['extract', 'all'], 'expected ids or all: true, found both', 'key')
  } else if (all === true) {
    queries.add({ type: 'reports' }, () => {})
  } else if (ids !== undefined && ids.length > 0) {
    for (const id of ids) queries.add({ type: 'report', id }, () => {})
  } else {
    reportEmptyKeys({ ids: 'at least one id, or all: true', all: 'true, or some ids' }, extract, problems)
    if (ids === undefined && all === undefined) {
      problems.add(['extract'], 'no report is requested; name some in ids, or set all: true', 'key')
    }
  }
}

function addFeeds({ identifiers }: ExtractFile, queries: Queries, problems: Problems): void {
  if (identifiers === undefined) {
    queries.add({ type: 'tenant' }, () => {})
    return
  }
  for (const id of identifiers) queries.add({ type: 'identifier', id }, () => {})
  if (identifiers.length > 0) return
  const found = problems.found(['extract', 'identifiers'])
  problems.add(
    ['extract', 'identifiers'],
    `expected at least one id, found ${found}; without the key, the feed of the tenant is read`,
  )
}

/** Windows are the folders of a feed's rows. Those of hours and days count from 1970. */
function feedWindows({ windows }: ExtractFile): WindowSettings {
  return { from: 0, until: 'now', every: windows?.every ?? { unit: 'month' }, lagMs: 0, perChain: null }
}

async function addCredentials(extract: ExtractFile, queries: Queries, problems: Problems): Promise<void> {
  const reportAt =
    (...path: Path): Report =>
    (text) =>
      problems.add(path, text)
  for (const [i, fqdn] of (extract.domains ?? []).entries()) {
    queries.add({ type: 'domain', fqdn }, reportAt('extract', 'domains', i))
  }
  if (extract.domains_file !== undefined) {
    await addDomainsFile(extract.domains_file, queries, problems)
  }
  for (const [i, query] of (extract.queries ?? []).entries()) {
    queries.add(asQuery(query), reportAt('extract', 'queries', i))
  }
  if (queries.all.length > 0 || !problems.none) return
  reportEmptyKeys(
    {
      domains: 'at least one domain',
      domains_file: 'a file that names at least one domain',
      queries: 'at least one query',
    },
    extract,
    problems,
  )
  if (problems.none)
    problems.add(['extract'], 'nothing to search for; name some domains, a domains_file or queries', 'key')
}

/** The keys that are reported if nothing is requested. */
function reportEmptyKeys(
  expected: Readonly<Partial<Record<keyof ExtractFile, string>>>,
  extract: ExtractFile,
  problems: Problems,
): void {
  for (const [key, what] of Object.entries(expected)) {
    if (extract[key as keyof ExtractFile] === undefined) continue
    const path = ['extract', key]
    const found = problems.found(path)
    problems.add(
      path,
      `expected ${what}, found ${key === 'domains_file' ? `${found}, which names none` : found}`,
    )
  }
}

/** A query of the file; one without a name of its own has no key for it. */
function asQuery({ as, ...query }: NonNullable<ExtractFile['queries']>[number]): Query {
  const kind = query.type === 'secret' ? ({ type: 'secret', secretEnv: query.secret_env } as const) : query
  return as === undefined ? kind : { ...kind, as }
}

async function addDomainsFile(name: string, queries: Queries, problems: Problems): Promise<void> {
  const { file, path } = problems.sourceOf(['extract', 'domains_file'])
  const read = await readText(resolve(dirname(path), name))
  if (!read.ok) {
    problems.add(
      ['extract', 'domains_file'],
      `expected a file of domains, found ${problems.found(['extract', 'domains_file'])}, which ${read.reason}`,
    )
    return
  }
  const label = isAbsolute(name) ? name : join(dirname(file), name)
  for (const [i, line] of read.text.split('\n').entries()) {
    const text = line.replace(/#.*/, '').trim()
    if (text === '') continue
    const report: Report = (problem) => {
      problems.addLine(label, i + 1, problem)
      // Of a file with many invalid domains, some are reported.
      problems.suppress(['extract', 'domains_file'])
    }
    const fqdn = parseDomain(text)
    if (fqdn === null) {
      report(
        `expected ${DOMAIN_EXPECTED}, found ${describeDomain(text)}: ${domainFault(text)}${suggestion(text)}`,
      )
    } else queries.add({ type: 'domain', fqdn }, report)
  }
}

function resolveWindows(extract: ExtractFile, problems: Problems): WindowSettings | null {
  if (extract.windows === undefined) return null
  const { from, until, every, per_chain } = extract.windows
  if (from === undefined) {
    const path = ['extract', 'windows', 'from']
    problems.add(path, `missing; expected ${INSTANT}`)
    return null
  }
  if (until !== 'now' && until <= from) {
    const [begin, end] = ['from', 'until'].map((key) => problems.found(['extract', 'windows', key]))
    problems.add(
      ['extract', 'windows', 'until'],
      `expected a time after the beginning, ${begin}, found ${end}`,
    )
  }
  if (from > Date.now() * 1000) {
    const path = ['extract', 'windows', 'from']
    problems.add(
      path,
      `${problems.found(path)} lies in the future: nothing can have been imported since; name an earlier time`,
    )
  }
  const end = until === 'now' ? Date.now() * 1000 : until
  // Weeks, months and years cannot divide a range into that many.
  if (
    every !== undefined &&
    'count' in every &&
    (end - from) / (every.count * UNIT_MICROS[every.unit]) > MAX_WINDOWS
  ) {
    const path = ['extract', 'windows', 'every']
    problems.add(
      path,
      `expected a length that makes at most ${MAX_WINDOWS} windows, found ${problems.found(path)}`,
    )
  }
  return { from, until, every: every ?? null, lagMs: extract.lag, perChain: per_chain }
}
