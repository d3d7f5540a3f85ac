import {
  ExportError,
  type ExtraField,
  type Format,
  isSearch,
  nullIf,
  type Pipeline,
  parseInstant,
  type Query,
  SEARCHES,
  type SecretFacts,
  type Store,
  type WindowLength,
  type WindowSettings,
} from '../core/index.ts'
import { mayHaveTables } from '../open-tables/index.ts'
import {
  differencesOf,
  frozenSettings,
  MANIFEST_PATH,
  readCheckpoint,
  readManifest,
  type Scope,
  type Settings,
} from '../state/index.ts'
import { withNames } from './completeness.ts'
import { namingLocations, openDataSet } from './open-data-set.ts'
import { limitFrom } from './quarantine-limit.ts'
import { otherScope } from './scope.ts'

export type Place = {
  /** What the file says. Only the place, tables, `load.keep` and the name of the mask key are taken from it. */
  readonly pipeline: Pipeline
  /** Why the rest of it is not known; null: it is. */
  readonly unknown: ExportError | null
}

export type Described = {
  /** As if its file still said what the data set was exported with. */
  readonly pipeline: Pipeline
  /** The same, with the queries and windows that the file plans, where it is known. */
  readonly planned: Pipeline
  /** How the file differs from that; empty: it does not, or is not known. */
  readonly differences: readonly string[]
}

/** Readers know it by its manifest; its checkpoint may be ahead. Where shards are replaced, tables have to follow. */
export type Use = 'read' | 'status' | 'change'

/** Before anything is exported, the file decides. @throws ExportError `config` when it does not say what to export */
export function describeDataSet({ pipeline, unknown }: Place, use: Use): Promise<Described> {
  return namingLocations(pipeline, async () => {
    const store = openDataSet(pipeline)
    const told = await toldBy(store, use)
    if (use === 'change' && unknown !== null && mayHaveTables(await store.list('')))
      throw new ExportError({
        kind: 'config',
        what: 'There are tables over the shards, and only the pipeline file says which and where they are',
        where: '.',
        next: 'Give the pipeline file in place of the path.',
      })
    if (told === null) {
      if (unknown !== null) throw unknown
      return { pipeline, planned: pipeline, differences: [] }
    }
    const exported = asExported(pipeline, told)
    if (unknown !== null) return { pipeline: exported, planned: exported, differences: [] }
    // What runs may change stays as the file has it.
    const { onInvalid, maxQuarantined } = pipeline.transform
    const described = { ...exported, transform: { ...exported.transform, onInvalid, maxQuarantined } }
    return {
      pipeline: described,
      planned: plannedBy(pipeline, described),
      differences: differences(pipeline, told),
    }
  })
}

/** Names of queries that need a key are those of the data set alone. */
function plannedBy({ extract }: Pipeline, described: Pipeline): Pipeline {
  const { queries, windows, unfiltered } = extract
  const planned = { ...described, extract: { ...described.extract, queries, windows, unfiltered } }
  return withNames(planned) === null ? described : planned
}

type Told = { readonly name: string; readonly settings: Settings; readonly scope: Scope | null }

/** What cannot be read is for the command to report. */
async function toldBy(store: Store, use: Use): Promise<Told | null> {
  const byManifest = async (): Promise<Told | null> => {
    const manifest = await readManifest(store).catch(nullIf('damaged'))
    if (manifest === null) return null
    return { name: manifest.pipeline, settings: manifest.settings, scope: manifest.scope }
  }
  const byCheckpoint = async (): Promise<Told | null> => {
    const state = await readCheckpoint(store).catch(nullIf('damaged', 'config'))
    if (state === null) return null
    return { name: state.header.pipeline, settings: state.header.settings, scope: state.scope }
  }
  const [first, second] = use === 'read' ? [byManifest, byCheckpoint] : [byCheckpoint, byManifest]
  return (await first()) ?? (await second())
}

function differences(pipeline: Pipeline, { name, settings, scope }: Told): readonly string[] {
  const named = withNames(pipeline)
  const other = named === null || scope === null ? null : otherScope(scope, named)
  return [
    ...(name === pipeline.name ? [] : [`it is of the pipeline "${name}", not of "${pipeline.name}"`]),
    ...differencesOf(settings, frozenSettings(pipeline, null)),
    ...(other === null ? [] : [`it ${other}`]),
  ]
}

function asExported(given: Pipeline, { name, settings, scope }: Told): Pipeline {
  const { service, extract, transform, load } = given
  const text = (key: string): string => String(settings[key])
  const list = (key: string): readonly string[] => listOf(settings, key)
  return {
    ...given,
    name,
    service: {
      ...service,
      ...(scope === null ? {} : { baseUrl: `https://${scope.service}` }),
      addresses: Object.fromEntries(
        Object.entries(service.addresses).map(([key, address]) => [
          key,
          String(settings[`service.${key}`] ?? address),
        ]),
      ) as Pipeline['service']['addresses'],
    },
    extract: {
      ...extract,
      resource: text('extract.resource') as Pipeline['extract']['resource'],
      order: text('extract.order') as Pipeline['extract']['order'],
      include: list('extract.include'),
      unfiltered: null,
      ...(scope === null ? {} : { queries: scope.queries.map(queryNamed), windows: windowsOf(scope) }),
    },
    transform: {
      ...transform,
      secret: text('transform.secret') as Pipeline['transform']['secret'],
      identity: text('transform.identity') as Pipeline['transform']['identity'],
      columns: list('transform.columns'),
      extraColumns: list('transform.extra_columns').map(fieldOf),
      secretFacts: factsOf(settings['transform.secret_facts']),
      ...(scope === null
        ? {}
        : {
            onInvalid: scope.on_invalid as Pipeline['transform']['onInvalid'],
            maxQuarantined: limitFrom(scope.max_quarantined),
          }),
    },
    load: {
      ...load,
      format: formatOf(settings),
      partitionBy: (['query', 'window'] as const).filter((by) => list('load.partition_by').includes(by)),
      ...(scope === null ? {} : { shardRows: scope.shard_rows }),
    },
  }
}

function listOf(settings: Settings, key: string): readonly string[] {
  const values = settings[key] ?? []
  if (!Array.isArray(values)) notReadable(key)
  return values.map(String)
}

export function formatOf(settings: Settings): Format {
  const common = { engine: settings['load.engine'], compression: settings['load.compression'] }
  const format =
    settings['load.format'] === 'csv'
      ? { kind: 'csv', ...common, escapeFormulas: settings['load.csv.escape_formulas'] === true }
      : { kind: 'parquet', ...common, encodings: settings['load.parquet.encodings'] }
  return format as Format
}

function fieldOf(text: string): ExtraField {
  const [, name, path, type] = /^(.*?): (.*) (\S+)$/s.exec(text) ?? []
  if (name === undefined || path === undefined) notReadable('transform.extra_columns')
  return { name, path: path.split('.'), type: type as ExtraField['type'], meaning: '' }
}

function factsOf(text: unknown): SecretFacts | null {
  if (text === undefined) return null
  const [, minLength, classes] = /^min_length (\d+), classes (\d)$/.exec(String(text)) ?? []
  if (classes === undefined) notReadable('transform.secret_facts')
  return { policy: { minLength: Number(minLength), classes: Number(classes) } }
}

/** The query of a name. Under `as` it keeps the name, whatever the policy hides: no mask key is needed. */
function queryNamed(name: string): Query {
  const dot = name.indexOf('.')
  const type = name.slice(0, dot)
  const label = decodeURIComponent(name.slice(dot + 1))
  if (isSearch(type)) return { type, [SEARCHES[type].by]: label, as: label } as unknown as Query
  switch (type) {
    case 'report':
      return { type, id: Number(label) }
    case 'reports':
      return { type }
    case 'feed':
      return label === 'tenant' ? { type: 'tenant' } : { type: 'identifier', id: Number(label) }
    default:
      return notReadable('scope')
  }
}

function windowsOf({ windows }: Scope): WindowSettings | null {
  if (windows === null) return null
  const { from, until, every, lag_seconds } = windows
  const instant = (text: string) => parseInstant(text) ?? notReadable('scope')
  return {
    from: instant(from),
    until: until === 'now' ? until : instant(until),
    every: every === null ? null : lengthOf(every),
    lagMs: lag_seconds * 1000,
    perChain: null,
  }
}

function lengthOf(every: string): WindowLength {
  const [, count, unit] = /^(\d+)([hd])$/.exec(every) ?? []
  if (unit !== undefined) return { unit: unit === 'h' ? 'hour' : 'day', count: Number(count) }
  return { unit: every as 'week' | 'month' | 'year' }
}

function notReadable(what: string): never {
  throw new ExportError({
    kind: 'damaged',
    what: `What the data set says of itself cannot be read: ${what}`,
    where: MANIFEST_PATH,
    next: 'Restore the data set from a backup, or start over with `run --fresh`.',
  })
}
