import { type Pipeline, unlessSecret } from '../core/index.ts'
import { IDENTITY_KEYS } from './problems/describe.ts'
import { isMapping, type Mapping } from './problems/tree.ts'
import { type ReadOptions, readSettings } from './read-pipeline.ts'
import { pipelineFile } from './schema/file-schema.ts'
import { type Deciding, type Key, keysOf } from './schema/key.ts'

/**
 * The settings of a pipeline as one file would have them: flags, files that it extends, variables and defaults are
 * resolved, and secrets are there by the names of their variables. It makes the same pipeline, except that what an
 * identity policy hides and what repeats a secret is left out.
 * @param pipeline as it was read with the same options
 */
export async function resolvedSettings(pipeline: Pipeline, options: ReadOptions): Promise<Mapping> {
  const { extract, transform, load } = pipeline
  const given: Mapping = await readSettings(pipeline, options)
  const service = sectionOf(given.service)
  const deciding: Deciding = {
    service,
    extract,
    transform: { on_invalid: transform.onInvalid },
    load: { format: load.format.kind, table_formats: load.tables.formats },
  }
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
    withDefaults(settings, keysOf(pipelineFile), deciding),
    transform.identity !== 'keep',
  ) as Mapping
}

function sectionOf(value: unknown): Mapping {
  return isMapping(value) ? value : {}
}

/** The given keys and the defaults of all that have an effect, in the order of the reference. */
function withDefaults(given: Mapping, keys: readonly Key[], deciding: Deciding): Mapping {
  const all: { [key: string]: unknown } = {}
  for (const { name, byDefault, keys: inner, whyIdle } of keys) {
    const value = given[name] ?? byDefault
    if (value === undefined || whyIdle(deciding) !== null) continue
    all[name] = inner !== null && isMapping(value) ? withDefaults(value, inner, deciding) : value
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
