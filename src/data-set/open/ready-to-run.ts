import {
  ExportError,
  IDENTITY_POLICY_NAMES,
  INVALID_POLICIES,
  type NamedPipeline,
  type Pipeline,
  type QuarantineLimit,
  requireKnown,
  SECRET_POLICY_NAMES,
} from '../../core/index.ts'
import { requireEngine } from '../../load/index.ts'
import { maskKeyFault, needsMaskKey, requireConsent } from '../../pipeline/index.ts'
import type { DataSetOptions } from '../options.ts'
import { namePipeline, type QuerySecrets, readQuerySecrets, requireSendableToken } from '../queries.ts'

/**
 * What a run needs before it looks at its data set. @param isNeeded whether variables of secret queries have to be set
 * @throws ExportError `config`
 */
export async function readyToRun(
  given: Pipeline,
  options: Pick<DataSetOptions, 'maskKey' | 'readSecret'> & { readonly allowPlaintext: boolean },
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
  { allowPlaintext, maskKey }: Pick<DataSetOptions, 'maskKey'> & { readonly allowPlaintext: boolean },
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
