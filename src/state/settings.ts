import { createHash, createHmac } from 'node:crypto'
import { ExportError, locationOf, type Pipeline } from '../core/index.ts'

/** What all runs on a data set must share, by keys of the pipeline file. */
export type Settings = Readonly<Record<string, unknown>>

/** SHA-256 in hex of the settings, independent of their order. */
export function settingsDigest(settings: Settings): string {
  return createHash('sha256').update(settingsText(settings)).digest('hex')
}

/** Input of {@link settingsDigest}: a JSON array of names and values, ordered by name, without a line break. */
export function settingsText(settings: Settings): string {
  return JSON.stringify(Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1)))
}

type Located = Pick<Pipeline, 'file' | 'locations'>

/** How a pipeline differs from a data set: a key of the file, and what to say of it. */
export type SettingChange = { readonly key: string; readonly text: string }

export function settingChanges(before: Settings, now: Settings): readonly SettingChange[] {
  const changes: SettingChange[] = []
  for (const key of new Set([...Object.keys(before), ...Object.keys(now)])) {
    const [was, is] = [before[key], now[key]]
    if (JSON.stringify(was) === JSON.stringify(is)) continue
    if (key === MASK_KEY) {
      if (was !== undefined && is !== undefined) changes.push(OTHER_MASK_KEY)
    } else changes.push({ key, text: `${key} was ${valueText(was, is)} and is now ${valueText(is, was)}` })
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

/** @param next what to do, in place of what helps against every change */
export function changedSettings(
  changes: readonly SettingChange[],
  pipeline: Located,
  next = 'Restore them, write to another load.path, or start over with --fresh.',
): ExportError {
  return new ExportError({
    kind: 'config',
    what: `The data set was begun with other settings: ${changes.map(({ text }) => text).join('; ')}`,
    where: [...new Set(changes.map(({ key }) => locationOf(pipeline, key)))].join(', '),
    next,
  })
}

/** @param maskKey null: none, or not known @throws ExportError `config` when the data set was begun with another */
export function checkMaskKey(
  header: { readonly settings: Settings } | null | undefined,
  maskKey: Uint8Array | null,
  pipeline: Located,
): void {
  const was = header?.settings[MASK_KEY]
  if (was === undefined || maskKey === null || was === keyCheck(maskKey)) return
  throw changedSettings([OTHER_MASK_KEY], pipeline)
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
const OTHER_MASK_KEY: SettingChange = {
  key: 'transform.mask_key_env',
  text: 'the mask key is not the one used so far',
}

/** What a data set keeps of its mask key. @param key null: no policy needs one */
export function maskKeySetting(key: Uint8Array | null): Settings {
  return key === null ? {} : { [MASK_KEY]: keyCheck(key) }
}

/** Whether a data set was begun with this key. */
export function isKeyOf(settings: Settings, key: Uint8Array | null): boolean {
  return key !== null && settings[MASK_KEY] === keyCheck(key)
}

/** Identifies a key. It is an HMAC under the key itself, so it reveals no more than a masked column. */
export function keyCheck(key: Uint8Array): string {
  return createHmac('sha256', key).update('fingerprint').digest('hex').slice(0, 32)
}

/** The beginning of {@link keyCheck}, which names columns of digests. */
export function keyFingerprint(key: Uint8Array): string {
  return keyCheck(key).slice(0, 8)
}
