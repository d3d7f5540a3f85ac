import {
  AUTH_KEYS,
  ExportError,
  hidesIdentity,
  IDENTITY_POLICIES,
  isHeaderText,
  learnSecret,
  locationOf,
  type NamedPipeline,
  type NamedQuery,
  nameQuery,
  nullIf,
  type Pipeline,
  type Query,
  queryLabel,
  requireSet,
  visibleLabel,
} from '../core/index.ts'
import { maskedQueryValue } from '../transform/index.ts'
import type { DataSetOptions } from './options.ts'

/** Characters of a digest in a name: enough to distinguish queries, and short enough for the name of a folder. */
const DIGEST_DIGITS = 16

/**
 * A query that hides an identity, and has no `as`, is named by the beginning of the digest in its rows' `query_value`.
 * @throws ExportError `config` when that needs a mask key and there is none, or two queries would share a name
 */
export function namePipeline(pipeline: Pipeline, maskKey: Uint8Array | null): NamedPipeline {
  const { extract } = pipeline
  const named = (queries: readonly Query[]): readonly NamedQuery[] => {
    const all = queries.map((query) =>
      isNamed(query) ? query : nameQuery(query, labelOf(query, pipeline, maskKey)),
    )
    requireDistinct(all, pipeline)
    return all
  }
  const unfiltered =
    extract.unfiltered == null ? null : { ...extract.unfiltered, queries: named(extract.unfiltered.queries) }
  return { ...pipeline, extract: { ...extract, queries: named(extract.queries), unfiltered } }
}

function isNamed(query: Query): query is NamedQuery {
  return 'name' in query
}

/** null: the names of queries need a key. */
export function withNames(pipeline: Pipeline, maskKey: Uint8Array | null = null): NamedPipeline | null {
  try {
    return namePipeline(pipeline, maskKey)
  } catch (error) {
    return nullIf('config')(error)
  }
}

function labelOf(query: Query, pipeline: Pipeline, maskKey: Uint8Array | null): string {
  const { transform } = pipeline
  const label = visibleLabel(query, transform.identity)
  if (label !== null) return label
  if (IDENTITY_POLICIES[transform.identity].isKeyed) {
    return maskedQueryValue(query, null, { ...transform, maskKey }).slice(0, DIGEST_DIGITS)
  }
  throw new ExportError({
    kind: 'config',
    what: `transform.identity hides the value of a query of type ${query.type}, and the query has no other name`,
    where: locationOf(pipeline, 'extract.queries'),
    next: 'Give the query a name with as.',
  })
}

/** A file system may fold the case of names, and their accents: on every one, two such folders would be the same. */
function requireDistinct(queries: readonly NamedQuery[], pipeline: Pipeline): void {
  const names = new Map<string, string>()
  for (const { name } of queries) {
    const other = names.get(foldedName(name))
    if (other !== undefined) throw sameNames(other, name, pipeline)
    names.set(foldedName(name), name)
  }
}

export function foldedName(name: string): string {
  return decodeURIComponent(name).normalize('NFC').toLowerCase()
}

export function sameNames(one: string, other: string, pipeline: Pipeline): ExportError {
  return new ExportError({
    kind: 'config',
    what:
      one === other
        ? `Two queries have the name ${one}`
        : `Two queries have names that some file systems take for the same: ${one} and ${other}`,
    where: locationOf(pipeline, 'extract.queries'),
    next: 'Give one of them another name with as.',
  })
}

/** The values of a pipeline's secret queries, by the name of the variable. */
export type QuerySecrets = ReadonlyMap<string, string>

/**
 * Once for the whole run: a file that changes must not mix the rows of two secrets, and no message may show one early.
 * @throws ExportError `config` when a variable is not set, if `isNeeded`
 */
export async function readQuerySecrets(
  { extract, transform, file }: Pipeline,
  { readSecret, maskKey }: Pick<DataSetOptions, 'readSecret' | 'maskKey'>,
  isNeeded = true,
): Promise<QuerySecrets> {
  if (maskKey !== null) learnSecret(new TextDecoder().decode(maskKey))
  const secrets = new Map<string, string>()
  for (const query of extract.queries) {
    if (hidesIdentity(query, transform.identity)) learnSecret(queryLabel(query))
    if (query.type !== 'secret' || secrets.has(query.secretEnv)) continue
    const found = await readSecret(query.secretEnv)
    if (!isNeeded && (found === null || found === '')) continue
    const secret = requireSet(query.secretEnv, found, file)
    learnSecret(secret)
    secrets.set(query.secretEnv, secret)
  }
  return secrets
}

/** A missing one is no error: a finished export needs none. @throws ExportError `config` when it cannot be sent */
export async function requireSendableToken(
  pipeline: Pipeline,
  { readSecret }: Pick<DataSetOptions, 'readSecret'>,
): Promise<void> {
  const { secretIn } = pipeline.service.auth
  const token = await readSecret(secretIn)
  if (token === null || token === '') return
  learnSecret(token)
  if (isHeaderText(token)) return
  throw new ExportError({
    kind: 'config',
    what: `${secretIn} holds a line break, another control character or a character outside ASCII, so it cannot be sent`,
    where: locationOf(pipeline, ...AUTH_KEYS),
    next: 'Set it to the token or key alone.',
  })
}
