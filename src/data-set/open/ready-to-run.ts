import {
  AUTH_KEYS,
  ExportError,
  hidesIdentity,
  IDENTITY_POLICY_NAMES,
  INVALID_POLICIES,
  isHeaderText,
  learnSecret,
  locationOf,
  type NamedPipeline,
  type Pipeline,
  type QuarantineLimit,
  queryLabel,
  requireKnown,
  requireSet,
  SECRET_POLICY_NAMES,
} from '../../core/index.ts'
import { requireEngine } from '../../load/index.ts'
import { maskKeyFault, needsMaskKey, requireConsent } from '../../pipeline/index.ts'
import type { WriteOptions } from '../options.ts'
import { namePipeline } from '../queries.ts'

/**
 * What a run needs before it looks at its data set. @param isNeeded whether variables of secret queries have to be set
 * @throws ExportError `config`
 */
export async function readyToRun(
  given: Pipeline,
  options: Pick<WriteOptions, 'maskKey' | 'readSecret'> & { readonly allowPlaintext: boolean },
  isNeeded = true,
): Promise<{ readonly pipeline: NamedPipeline; readonly secrets: QuerySecrets }> {
  requirePolicies(given, options)
  requireEngine(given.load.format)
  const pipeline = namePipeline(given, options.maskKey)
  const secrets = await readQuerySecrets(pipeline, options, isNeeded)
  await requireSendableToken(pipeline, options)
  return { pipeline, secrets }
}

/** A pipeline from a file was checked when it was read, one of a program was not. */
function requirePolicies(
  { transform, file, ...pipeline }: Pipeline,
  { allowPlaintext, maskKey }: Pick<WriteOptions, 'maskKey'> & { readonly allowPlaintext: boolean },
): void {
  const { secret, identity, onInvalid, maxQuarantined } = transform
  requireKnown('transform.secret', secret, SECRET_POLICY_NAMES, file)
  requireKnown('transform.identity', identity, IDENTITY_POLICY_NAMES, file)
  requireKnown('transform.on_invalid', onInvalid, INVALID_POLICIES, file)
  requireLimit(maxQuarantined, file)
  requireConsent(secret, allowPlaintext, file)
  if (needsMaskKey({ transform, ...pipeline })) requireKey(maskKey, file)
}

function requireLimit(limit: QuarantineLimit | undefined, file: string): void {
  if (limit?.kind === 'count' && limit.items >= 0) return
  if (limit?.kind === 'share' && limit.percent >= 0) return
  throw new ExportError({
    kind: 'config',
    what: 'transform.max_quarantined is no limit',
    where: file,
    next: "Give it as { kind: 'count', items } or as { kind: 'share', percent }.",
  })
}

function requireKey(maskKey: unknown, file: string): void {
  const fault = maskKey instanceof Uint8Array ? maskKeyFault(maskKey) : 'is not there'
  if (fault === null) return
  throw new ExportError({
    kind: 'config',
    what: `The masking key of the policy hmac ${fault}`,
    where: file,
    next: 'Set the variable that transform.mask_key_env names to 32 bytes or more, and keep it: another key gives other hashes.',
  })
}

/** The values of a pipeline's secret queries, by the name of the variable. */
export type QuerySecrets = ReadonlyMap<string, string>

/**
 * Once for the whole run: a file that changes must not mix the rows of two secrets, and no message may show one early.
 * @throws ExportError `config` when a variable is not set, if `isNeeded`
 */
async function readQuerySecrets(
  { extract, transform, file }: Pipeline,
  { readSecret, maskKey }: Pick<WriteOptions, 'readSecret' | 'maskKey'>,
  isNeeded: boolean,
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
async function requireSendableToken(
  pipeline: Pipeline,
  { readSecret }: Pick<WriteOptions, 'readSecret'>,
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
