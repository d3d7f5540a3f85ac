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
import type { Scope } from '../state/index.ts'
import {
  differencesOf,
  frozenSettings,
  MANIFEST_PATH,
  readCheckpoint,
  readManifest,
  type Settings,
} from '../state/index.ts'
import { withNames } from './completeness.ts'
import { namingLocations, openDataSet } from './open-data-set.ts'
import { limitFrom } from './quarantine-limit.ts'
import { otherScope } from './scope.ts'

/** Where a data set lies, as a pipeline file or the path of a data set says. */
export type Place = {
  /** What the file says. Only the place, tables, `load.keep` and the name of the mask key are taken from it. */
  readonly pipeline: Pipeline
  /** Why the rest of it is not known; null: it is. */
  readonly unknown: ExportError | null
}

/** A data set as it describes itself. */
export type Described = {
  /** As if its file still said what the data set was exported with. */
  readonly pipeline: Pipeline
  /** How the file differs from that; empty: it does not, or is not known. */
  readonly differences: readonly string[]
}

/**
 * Reads what a data set says of itself: columns, format, masking, queries and windows are those of its checkpoint, or of
 * its manifest where it was moved without. Before anything is exported, the file decides.
 * @param isToChange whether shards may be replaced: tables over them have to follow
 * @throws ExportError `config` when nothing is exported and the file does not say what to export
 */
export function describeDataSet({ pipeline, unknown }: Place, isToChange = false): Promise<Described> {
  return namingLocations(pipeline, async () => {
    const store = openDataSet(pipeline)
    const told = await toldBy(store)
    if (isToChange && unknown !== null && mayHaveTables(await store.list(''))) throw tablesUnknown()
    if (told === null) {
      if (unknown !== null) throw unknown
      return { pipeline, differences: [] }
    }
    const described = asExported(pipeline, told)
    if (unknown !== null) return { pipeline: described, differences: [] }
    // What runs may change stays as the file has it.
    const { onInvalid, maxQuarantined } = pipeline.transform
    const transform = { ...described.transform, onInvalid, maxQuarantined }
    return { pipeline: { ...described, transform }, differences: differences(pipeline, told) }
  })
}

type Told = { readonly name: string; readonly settings: Settings; readonly scope: Scope | null }

/** What cannot be read is for the command to report. */
async function toldBy(store: Store): Promise<Told | null> {
  const state = await readCheckpoint(store).catch(nullIf('damaged'))
  if (state !== null) {
    const { header, scope } = state
    return { name: header.pipeline, settings: header.settings, scope }
  }
  const manifest = await readManifest(store).catch(nullIf('damaged'))
  return manifest === null
    ? null
    : { name: manifest.pipeline, settings: manifest.settings, scope: manifest.scope }
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
  const list = (key: string): readonly string[] => {
    const values = settings[key] ?? []
    if (!Array.isArray(values)) throw notReadable(key)
    return values.map(String)
  }
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
      format: formatOf(settings, list),
      partitionBy: (['query', 'window'] as const).filter((by) => list('load.partition_by').includes(by)),
    },
  }
}

function formatOf(settings: Settings, list: (key: string) => readonly string[]): Format {
  const common = { engine: settings['load.engine'], compression: settings['load.compression'] }
  const format =
    settings['load.format'] === 'csv'
      ? { kind: 'csv', ...common, escapeFormulas: settings['load.csv.escape_formulas'] === true }
      : {
          kind: 'parquet',
          ...common,
          encodings: settings['load.parquet.encodings'],
          bloomFilters: list('load.parquet.bloom_filters'),
        }
  return format as Format
}

/** Reads the text of a field in the settings back. */
function fieldOf(text: string): ExtraField {
  const [, name, path, type] = /^(.*?): (.*) (\S+)$/s.exec(text) ?? []
  if (name === undefined || path === undefined) throw notReadable('transform.extra_columns')
  return { name, path: path.split('.'), type: type as ExtraField['type'], meaning: '' }
}

/** Reads the text of the policy in the settings back. */
function factsOf(text: unknown): SecretFacts | null {
  if (text === undefined) return null
  const [, minLength, classes] = /^min_length (\d+), classes (\d)$/.exec(String(text)) ?? []
  if (classes === undefined) throw notReadable('transform.secret_facts')
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
      throw notReadable('scope')
  }
}

function windowsOf({ windows }: Scope): WindowSettings | null {
  if (windows === null) return null
  const { from, until, every, lag_seconds } = windows
  const instant = (text: string) => parseInstant(text) ?? fail('scope')
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

function tablesUnknown(): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'There are tables over the shards, and only the pipeline file says which and where they are',
    where: '.',
    next: 'Give the pipeline file in place of the path.',
  })
}

function fail(what: string): never {
  throw notReadable(what)
}

function notReadable(what: string): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: `What the data set says of itself cannot be read: ${what}`,
    where: MANIFEST_PATH,
    next: 'Restore the data set from a backup, or start over with `run --fresh`.',
  })
}
