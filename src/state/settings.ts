import { createHash, createHmac } from 'node:crypto'
import {
  ExportError,
  type ExtraField,
  locationOf,
  type Pipeline,
  rulesOf,
  type SecretFacts,
} from '../core/index.ts'

export type Settings = Readonly<Record<string, unknown>>

/** What all runs on a data set must share: parameters of requests, to which cursors belong, and the form of files. */
export function frozenSettings(pipeline: Pipeline, maskKey: Uint8Array | null): Settings {
  const { extract, transform, load } = pipeline
  const { format } = load
  return {
    'extract.resource': extract.resource,
    ...addressesOf(pipeline),
    'extract.order': extract.order,
    'extract.include': [...extract.include].sort(),
    'transform.secret': transform.secret,
    'transform.identity': transform.identity,
    [COLUMNS]: transform.columns,
    ...(transform.extraColumns.length === 0
      ? {}
      : { [EXTRA_COLUMNS]: transform.extraColumns.map(fieldText) }),
    ...(transform.secretFacts === null ? {} : { [SECRET_FACTS]: factsText(transform.secretFacts) }),
    'load.format': format.kind,
    'load.engine': format.engine,
    'load.compression': format.compression,
    'load.partition_by': [...load.partitionBy].sort(),
    ...(format.kind === 'csv'
      ? { 'load.csv.escape_formulas': format.escapeFormulas }
      : { 'load.parquet.encodings': format.encodings }),
    ...(maskKey === null ? {} : { [MASK_KEY]: maskKeyCheck(maskKey) }),
  }
}

/** A cursor belongs to its endpoint. */
function addressesOf({ service, extract: { resource } }: Pipeline): Settings {
  const { reading, addresses } = rulesOf(resource)
  if (reading === 'list') return {}
  return Object.fromEntries(addresses.map((key) => [`service.${key}`, service.addresses[key]]))
}

const COLUMNS = 'transform.columns'
const EXTRA_COLUMNS = 'transform.extra_columns'

const SECRET_FACTS = 'transform.secret_facts'

function factsText({ policy }: SecretFacts): string {
  return `min_length ${policy.minLength}, classes ${policy.classes}`
}

function fieldText({ name, path, type }: ExtraField): string {
  return `${name}: ${path.join('.')} ${type}`
}

/** SHA-256 in hex of the settings, independent of their order. */
export function settingsDigest(settings: Settings): string {
  return createHash('sha256').update(settingsText(settings)).digest('hex')
}

/** Input of {@link settingsDigest}: a JSON array of names and values, ordered by name, without a line break. */
export function settingsText(settings: Settings): string {
  return JSON.stringify(Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** @throws ExportError `config` with every setting that differs from the data set's */
export function checkSettings(before: Settings, now: Settings, pipeline: Located): void {
  const changes = changesOf(before, now)
  if (changes.length > 0) throw changed(changes, pipeline)
}

type Located = Pick<Pipeline, 'file' | 'locations'>

type Change = { readonly name: string; readonly text: string }

function changesOf(before: Settings, now: Settings): readonly Change[] {
  const changes: Change[] = []
  for (const name of new Set([...Object.keys(before), ...Object.keys(now)])) {
    const [was, is] = [before[name], now[name]]
    if (JSON.stringify(was) === JSON.stringify(is)) continue
    if (name === MASK_KEY) {
      if (was !== undefined && is !== undefined) changes.push({ name, text: OTHER_MASK_KEY })
    } else changes.push({ name, text: `${name} was ${valueText(was, is)} and is now ${valueText(is, was)}` })
  }
  return changes
}

/** Of a list, what the other one lacks: columns are many. */
function valueText(value: unknown, other: unknown): string {
  if (!Array.isArray(value) || !Array.isArray(other)) return JSON.stringify(value) ?? 'not set'
  const own = value.filter((item) => !other.includes(item))
  const haveSame = own.length === 0 && other.every((item) => value.includes(item))
  if (haveSame || own.length === value.length) return JSON.stringify(value)
  return `[${['…', ...own.map((item) => JSON.stringify(item))].join(',')}]`
}

export function differencesOf(before: Settings, now: Settings): readonly string[] {
  return changesOf(before, now).map(({ text }) => text)
}

function changed(changes: readonly Change[], pipeline: Located): ExportError {
  return new ExportError({
    kind: 'config',
    what: `The data set was begun with other settings: ${changes.map(({ text }) => text).join('; ')}`,
    where: [
      ...new Set(
        changes.map(({ name }) => locationOf(pipeline, name === MASK_KEY ? 'transform.mask_key_env' : name)),
      ),
    ].join(', '),
    next: 'Restore them, write to another load.path, or start over with --fresh.',
  })
}

/** @param maskKey null: none, or not known @throws ExportError `config` when the data set was begun with another */
export function checkMaskKey(
  header: { readonly settings: Settings } | null | undefined,
  maskKey: Uint8Array | null,
  pipeline: Located,
): void {
  const was = header?.settings[MASK_KEY]
  if (was === undefined || maskKey === null || was === maskKeyCheck(maskKey)) return
  throw changed([{ name: MASK_KEY, text: OTHER_MASK_KEY }], pipeline)
}

/** @param fingerprint of {@link keyFingerprint} @throws ExportError `config` when the data set has another mask key */
export function checkFingerprint(
  header: { readonly settings: Settings } | null | undefined,
  fingerprint: string,
  pipeline: Located,
): void {
  const was = header?.settings[MASK_KEY]
  if (typeof was !== 'string' || was.startsWith(fingerprint)) return
  throw new ExportError({
    kind: 'config',
    what: 'The digests were made with another mask key than the data set, so nobody would be found',
    where: locationOf(pipeline, 'transform.mask_key_env'),
    next: 'Make them with the key of the data set.',
  })
}

const MASK_KEY = 'mask key check'
const OTHER_MASK_KEY = 'the mask key is not the one used so far'

/** Identifies a mask key. It is an HMAC under the key itself, so it reveals no more than a masked column. */
export function maskKeyCheck(key: Uint8Array): string {
  return createHmac('sha256', key).update('fingerprint').digest('hex').slice(0, 32)
}

/** The beginning of {@link maskKeyCheck}, which names columns of digests. */
export function keyFingerprint(key: Uint8Array): string {
  return maskKeyCheck(key).slice(0, 8)
}
