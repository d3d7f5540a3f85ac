import { isAbsolute } from 'node:path'
import { type Auth, IDENTITY_POLICIES, type Pipeline, unlessSecret } from '../core/index.ts'
import { IDENTITY_KEYS } from './problems/describe.ts'
import { isMapping, type Mapping } from './problems/tree.ts'
import { type ReadOptions, readSource, sourceOf } from './read-pipeline.ts'
import { asSettings, type PipelineFile, type PipelineSettings, pipelineFile } from './schema/file-schema.ts'
import { type Key, keysOf, whyIdle } from './schema/key.ts'
import { learnSecrets } from './secrets/secrets.ts'

/**
 * The settings as one file has them: flags, `extends`, `domains_file`, variables, defaults and paths are resolved.
 * In any directory they make the same pipeline, except for `file`, hidden identities and what repeats a secret.
 * @throws ExportError 'config' when the file is invalid
 */
export async function resolvedSettings(path: string, options: ReadOptions): Promise<Mapping> {
  const { pipeline, file, root } = await readSource(await sourceOf(path, options), options)
  await learnSecrets(options.env, pipeline)
  const { transform, load } = pipeline
  const given: Mapping = wholeSettings(pipeline, asSettings(root), options.overrides?.domains !== undefined)
  // These defaults depend on other keys.
  const own = sectionOf(given.load)
  const encodings = load.format.kind === 'parquet' ? load.format.encodings : undefined
  const settings = {
    ...given,
    transform: { columns: transform.columns, ...sectionOf(given.transform) },
    load: {
      compression: load.format.compression,
      ...own,
      parquet: { encodings, ...sectionOf(own.parquet) },
    },
  }
  return shown(
    withDefaults(settings, keysOf(pipelineFile), file),
    !IDENTITY_POLICIES[transform.identity].shows,
  ) as Mapping
}

/** @param isNarrowed whether flags choose domains */
function wholeSettings(
  { extract, load, service }: Pipeline,
  settings: PipelineSettings,
  isNarrowed: boolean,
): PipelineSettings {
  const { domains_file, ...rest } = settings.extract
  const searched = extract.queries.filter((query) => query.type === 'domain')
  const domains = searched.flatMap(({ as, fqdn }) => (as === undefined ? [fqdn] : []))
  const queries = isNarrowed ? searched.filter(({ as }) => as !== undefined) : rest.queries
  const all = {
    ...settings,
    extract: isNarrowed || domains_file !== undefined ? { ...rest, domains, queries } : rest,
    load: { ...settings.load, path: load.path },
    service: { ...settings.service, ...secretFile(service.auth) },
  }
  // All variables are expanded, so a remaining `${` is text.
  return JSON.parse(JSON.stringify(all).replaceAll('${', () => '$${'))
}

/** Of the key that the file has, as an absolute path. */
function secretFile(auth: Auth): Mapping {
  const path = auth.secretIn
  return isAbsolute(path) ? { [auth.kind === 'token' ? 'token_file' : 'api_key_file']: path } : {}
}

function sectionOf(value: unknown): Mapping {
  return isMapping(value) ? value : {}
}

/** The given keys and the defaults of all that have an effect, in the order of the reference. */
function withDefaults(given: Mapping, keys: readonly Key[], file: PipelineFile): Mapping {
  const all: { [key: string]: unknown } = {}
  for (const key of keys) {
    const value = given[key.name] ?? key.byDefault
    if (value === undefined || whyIdle(key, file) !== null) continue
    all[key.name] = key.keys !== null && isMapping(value) ? withDefaults(value, key.keys, file) : value
  }
  return all
}

function shown(value: unknown, hidesIdentity: boolean): unknown {
  if (typeof value === 'string') return unlessSecret(value)
  if (Array.isArray(value)) return value.map((item) => shown(item, hidesIdentity))
  if (!isMapping(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      hidesIdentity && IDENTITY_KEYS.has(key) ? 'hidden by transform.identity' : shown(inner, hidesIdentity),
    ]),
  )
}
