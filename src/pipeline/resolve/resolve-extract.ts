import { dirname, isAbsolute, join, resolve } from 'node:path'
import {
  type ExtractSettings,
  hidesIdentity,
  IDENTITY_POLICIES,
  type IdentityPolicy,
  MAX_WINDOWS,
  nameQuery,
  type Query,
  queryLabel,
  rulesOf,
  visibleLabel,
  type WindowSettings,
} from '../../core/index.ts'
import { noDomain } from '../problems/describe.ts'
import type { Problems } from '../problems/problems.ts'
import { INSTANT } from '../schema/extract-keys.ts'
import type { PipelineFile } from '../schema/file-schema.ts'
import { parseDomain } from '../values/addresses.ts'
import { readText } from '../values/read-text.ts'

type ExtractFile = PipelineFile['extract']
type Report = (text: string) => void
/** A query, and how what is wrong with it is reported. */
type Reported = readonly [Query, Report]

const UNIT_MICROS = { hour: 3_600_000_000, day: 86_400_000_000 } as const
/** Longest name of a file or folder on the file systems in use (NAME_MAX). */
const MAX_FOLDER_BYTES = 255

export async function resolveExtract(settings: PipelineFile, problems: Problems): Promise<ExtractSettings> {
  const { extract } = settings
  const { reading, pageSize, optional } = rulesOf(extract.resource)
  const isFeed = reading === 'feed'
  // Where it may name none, the whole key is refused.
  for (const [i, field] of (optional?.length ? (extract.include ?? []) : []).entries()) {
    if (optional!.includes(field)) continue
    const path = ['extract', 'include', i]
    const expected = `${optional!.join(' or ')}, the optional field of a ${extract.resource}`
    problems.add(path, `expected ${expected}, found ${problems.found(path)}`)
  }
  return {
    resource: extract.resource,
    queries: isFeed
      ? feedsOf(extract, problems)
      : reading === 'list'
        ? reportsOf(extract, problems)
        : await searchesOf(settings, problems),
    windows: isFeed ? feedWindows(extract) : resolveWindows(extract, problems),
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

function reportsOf(extract: ExtractFile, problems: Problems): readonly Query[] {
  const { ids = [], all } = extract
  if (extract.ids !== undefined && all === true)
    problems.add(['extract', 'all'], 'expected ids or all: true, found both', 'key')
  if (all === true) return [{ type: 'reports' }]
  if (ids.length === 0)
    reportNothing(['ids', 'all'], 'expected some ids, or all: true, found none', extract, problems)
  return [...new Set(ids)].map((id) => ({ type: 'report', id }))
}

function feedsOf({ identifiers, order }: ExtractFile, problems: Problems): readonly Query[] {
  if (order === 'desc')
    problems.add(['extract', 'order'], 'expected asc, the order in which a feed is read, found desc')
  if (identifiers === undefined) return [{ type: 'tenant' }]
  return [...new Set(identifiers)].map((id) => ({ type: 'identifier', id }))
}

/** Windows are the folders of a feed's rows. Those of hours and days count from 1970. */
function feedWindows({ windows }: ExtractFile): WindowSettings {
  return { from: 0, until: 'now', every: windows?.every ?? { unit: 'month' }, lagMs: 0, perChain: null }
}

async function searchesOf({ extract, transform, load }: PipelineFile, problems: Problems) {
  const { domains = [], domains_file: file, queries: given = [] } = extract
  const at =
    (key: string, i: number): Report =>
    (text) =>
      problems.add(['extract', key, i], text)
  const all: readonly Reported[] = [
    ...domains.map((fqdn, i): Reported => [{ type: 'domain', fqdn }, at('domains', i)]),
    ...(file === undefined ? [] : await inDomainsFile(file, problems)),
    ...given.map((query, i): Reported => [asQuery(query), at('queries', i)]),
  ]
  const queries = unique(all, load.partition_by.includes('query'), transform.identity)
  const nothing = 'expected some domains, a domains_file that names some, or queries, found none'
  if (queries.length === 0 && problems.none)
    reportNothing(['domains', 'domains_file', 'queries'], nothing, extract, problems)
  return queries
}

/** At the first of the keys that is there, or else at their section. */
function reportNothing(
  keys: readonly (keyof ExtractFile)[],
  text: string,
  extract: ExtractFile,
  problems: Problems,
): void {
  const key = keys.find((each) => extract[each] !== undefined)
  problems.add(key === undefined ? ['extract'] : ['extract', key], text, 'key')
}

/** A query of the file; one without a name of its own has no key for it. */
function asQuery({ as, ...query }: NonNullable<ExtractFile['queries']>[number]): Query {
  const kind = query.type === 'secret' ? ({ type: 'secret', secretEnv: query.secret_env } as const) : query
  return as === undefined ? kind : { ...kind, as }
}

async function inDomainsFile(name: string, problems: Problems): Promise<readonly Reported[]> {
  const key = ['extract', 'domains_file']
  const { file, path } = problems.sourceOf(key)
  const read = await readText(resolve(dirname(path), name))
  if (!read.ok) {
    problems.add(key, `expected a file of domains, found ${problems.found(key)}, which ${read.reason}`)
    return []
  }
  const label = isAbsolute(name) ? name : join(dirname(file), name)
  return read.text.split('\n').flatMap((line, i): readonly Reported[] => {
    const text = line.replace(/#.*/, '').trim()
    const report: Report = (problem) => problems.addLine(label, i + 1, problem)
    const fqdn = text === '' ? null : parseDomain(text)
    if (fqdn !== null) return [[{ type: 'domain', fqdn }, report]]
    if (text !== '') report(noDomain(text))
    return []
  })
}

/** A placeholder for the first 16 hexadecimal digits of an identity's digest, which depend on the mask key. */
const ANY_DIGEST = '0'.repeat(16)

/** The queries, unique by name: queries of one name would share a folder and a checkpoint. */
function unique(all: readonly Reported[], inFolders: boolean, identity: IdentityPolicy): readonly Query[] {
  const byName = new Map<string, Query>()
  /** Names by what is requested. */
  const names = new Map<string, string>()
  for (const [query, report] of all) {
    const label = visibleLabel(query, identity)
    const asked = `${query.type}.${queryLabel(query)}`
    // The name of a hidden identity is not known yet. Other names have no space.
    const name = label === null ? ` ${asked}` : nameQuery(query, label).name
    const bytes = Buffer.byteLength(`query=${nameQuery(query, label ?? ANY_DIGEST).name}`)
    const before = names.get(asked)
    if (label === null && !IDENTITY_POLICIES[identity].isKeyed)
      report(`under transform.identity: ${identity} the query needs a name that does not reveal it: add as`)
    else if (hidesIdentity(query, identity) && label !== null && reveals(query, label))
      report(`its as reveals what transform.identity: ${identity} hides`)
    else if (inFolders && bytes > MAX_FOLDER_BYTES)
      report(
        `its folder name, percent-encoded, would have ${bytes} bytes of ${MAX_FOLDER_BYTES}; leave query out of load.partition_by`,
      )
    else if (before !== undefined && before !== name) report('the same query already has another name')
    else if (before === undefined && byName.has(name)) report('another query has this name already')
    else {
      byName.set(name, query)
      names.set(asked, name)
    }
  }
  return [...byName.values()]
}

/** A label reveals an address also if it contains it. A keyword may be part of many labels. */
function reveals(query: Query, label: string): boolean {
  const [name, value] = [label.toLowerCase(), queryLabel(query).toLowerCase()]
  return query.type === 'email' ? name.includes(value) : name === value
}

function resolveWindows(extract: ExtractFile, problems: Problems): WindowSettings | null {
  if (extract.windows === undefined) return null
  const { from, until, every, per_chain } = extract.windows
  const at = (key: string) => ['extract', 'windows', key]
  const found = (key: string) => problems.found(at(key))
  if (from === undefined) {
    problems.add(at('from'), `missing; expected ${INSTANT}`)
    return null
  }
  const now = Date.now() * 1000
  if (until !== 'now' && until <= from)
    problems.add(
      at('until'),
      `expected a time after the beginning, ${found('from')}, found ${found('until')}`,
    )
  if (from > now)
    problems.add(
      at('from'),
      `${found('from')} lies in the future: nothing can have been imported since; name an earlier time`,
    )
  // Weeks, months and years cannot divide a range into that many.
  const length = every !== undefined && 'count' in every ? every.count * UNIT_MICROS[every.unit] : null
  if (length !== null && ((until === 'now' ? now : until) - from) / length > MAX_WINDOWS)
    problems.add(
      at('every'),
      `expected a length that makes at most ${MAX_WINDOWS} windows, found ${found('every')}`,
    )
  return { from, until, every: every ?? null, lagMs: extract.lag, perChain: per_chain }
}
