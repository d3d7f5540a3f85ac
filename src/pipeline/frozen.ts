import * as z from 'zod'
import {
  ADDRESS_KEYS,
  type AddressKey,
  type CsvFormat,
  ExportError,
  IDENTITY_POLICY_NAMES,
  type NamedPipeline,
  type ParquetFormat,
  type Pipeline,
  RESOURCE_NAMES,
  rulesOf,
  SECRET_POLICY_NAMES,
} from '../core/index.ts'

/** Settings by their keys in the pipeline file. */
export type Settings = Readonly<Record<string, unknown>>

type Frozen = {
  /** Where the value is in a Pipeline. */
  readonly at: readonly [section: keyof Pipeline, ...keys: string[]]
  readonly value: z.ZodType
  /** What a data set was exported with that was begun before the key existed. */
  readonly before?: unknown
  /** Default: every data set has it. */
  readonly isIn?: (pipeline: Pipeline | NamedPipeline) => boolean
}

const isParquet = ({ load }: Pipeline | NamedPipeline): boolean => load.format.kind === 'parquet'

/** By the members of a format: the compiler names one that is not here. */
const FORMAT: Readonly<
  Record<keyof ParquetFormat | keyof CsvFormat, Omit<Frozen, 'at'> & { readonly key: string }>
> = {
  kind: { key: 'load.format', value: z.enum(['parquet', 'csv']) },
  engine: { key: 'load.engine', value: z.string() },
  compression: { key: 'load.compression', value: z.string() },
  escapeFormulas: {
    key: 'load.csv.escape_formulas',
    value: z.boolean(),
    isIn: (pipeline) => !isParquet(pipeline),
  },
  encodings: { key: 'load.parquet.encodings', value: z.enum(['compact', 'plain']), isIn: isParquet },
}

/**
 * What all runs on a data set share: what cursors belong to, and the form of its files. A data set keeps the values of the
 * Pipeline. A new key has `before`: without it no older data set could be read.
 */
const FROZEN: Readonly<Record<string, Frozen>> = {
  'extract.resource': { at: ['extract', 'resource'], value: z.enum(RESOURCE_NAMES) },
  ...Object.fromEntries(ADDRESS_KEYS.map((key) => [`service.${key}`, address(key)])),
  'extract.order': { at: ['extract', 'order'], value: z.enum(['asc', 'desc']) },
  'transform.secret': { at: ['transform', 'secret'], value: z.enum(SECRET_POLICY_NAMES) },
  'transform.identity': { at: ['transform', 'identity'], value: z.enum(IDENTITY_POLICY_NAMES) },
  'load.partition_by': { at: ['load', 'partitionBy'], value: z.array(z.enum(['query', 'window'])) },
  ...Object.fromEntries(
    Object.entries(FORMAT).map(([name, { key, ...rest }]) => [
      key,
      { at: ['load', 'format', name], ...rest },
    ]),
  ),
}

function address(key: AddressKey): Frozen {
  return {
    at: ['service', 'addresses', key],
    value: z.string(),
    isIn: ({ extract: { resource } }) =>
      rulesOf(resource).reading !== 'list' && rulesOf(resource).addresses.includes(key),
  }
}

export function frozenSettings(pipeline: Pipeline | NamedPipeline): Settings {
  const entries = Object.entries(FROZEN).filter(([, { isIn }]) => isIn?.(pipeline) ?? true)
  return Object.fromEntries(entries.map(([key, { at }]) => [key, valueAt(pipeline, at)]))
}

/** What a data set keeps, with what it does not know yet. */
export function sinceBegun(settings: Settings, pipeline: Pipeline | NamedPipeline): Settings {
  const unknown = Object.entries(FROZEN).filter(
    ([key, { before, isIn }]) =>
      before !== undefined && settings[key] === undefined && (isIn?.(pipeline) ?? true),
  )
  return { ...settings, ...Object.fromEntries(unknown.map(([key, { before }]) => [key, before])) }
}

/** The pipeline with what a data set keeps. @throws ExportError `damaged` with the first value that is none of its key */
export function withFrozen(given: Pipeline, settings: Settings): Pipeline {
  let pipeline = { ...given, load: { ...given.load, format: {} as Pipeline['load']['format'] } }
  for (const [key, { at, value, before, isIn }] of Object.entries(FROZEN)) {
    const kept = settings[key] ?? before
    if (kept === undefined && isIn?.(pipeline) === false) continue
    const parsed = value.safeParse(kept)
    if (!parsed.success) throw unreadable(key)
    pipeline = withValue(pipeline, at, parsed.data)
  }
  return pipeline
}

function valueAt(from: unknown, path: readonly string[]): unknown {
  return path.reduce((value, key) => (value as Record<string, unknown>)[key], from)
}

function withValue<T extends object>(into: T, [key, ...rest]: readonly string[], value: unknown): T {
  const inner = (into as Record<string, unknown>)[key!]
  return { ...into, [key!]: rest.length === 0 ? value : withValue(inner as object, rest, value) }
}

/** @param what a key, or what else the data set says of itself */
export function unreadable(what: string): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: `What the data set says of itself cannot be read: ${what}`,
    where: '_manifest.json',
    next: 'Restore the data set from a backup, or start over with `run --fresh`.',
  })
}
