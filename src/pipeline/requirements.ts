import {
  ExportError,
  isExportError,
  keySet,
  locationOf,
  type Pipeline,
  SECRET_POLICIES,
  SECRET_POLICY_NAMES,
  type SecretPolicy,
} from '../core/index.ts'
import { type Environment, needsMaskKey, readMaskKey, requestSecrets, variable } from './secrets/secrets.ts'

type Dependencies = {
  readonly env: Environment
  /** Consent to `transform.secret: plaintext`, given for this run. */
  readonly allowPlaintext: boolean
  /** What only requests need may be unset. Default: false. */
  readonly sendsNothing?: boolean
}

/**
 * Checks what a run needs besides its file: variables with secrets and keys, and consent to unmasked secrets.
 * @returns the variables that it reads @throws ExportError 'config' that names everything missing with file and line
 */
export async function checkRequirements(
  pipeline: Pipeline,
  { env, allowPlaintext, sendsNothing = false }: Dependencies,
): Promise<readonly string[]> {
  const { secret, maskKeyEnv } = pipeline.transform
  const missing: string[] = []
  const require = async (key: string, check: () => unknown): Promise<void> => {
    try {
      await check()
    } catch (error) {
      if (!isExportError(error, 'config')) throw error
      missing.push(`${locationOf(pipeline, key)}: ${key}: ${error.what}. ${error.next}`)
    }
  }
  const isSet = (name: string): boolean => variable(name, env) !== '' || variable(`${name}_FILE`, env) !== ''
  const needed = requestSecrets(pipeline).filter(({ name }) => !sendsNothing || isSet(name))
  for (const { name, key, read } of needed) await require(key, () => read(name, env))
  // If the file does not name the mask key, the policy that needs it is reported.
  const policy = SECRET_POLICIES[secret].isKeyed ? 'transform.secret' : 'transform.identity'
  await require(keySet(pipeline, 'transform.mask_key_env', policy), () => readMaskKey(pipeline, env))
  await require('transform.secret', () => requireConsent(secret, allowPlaintext, ''))
  if (missing.length === 0)
    return [...needed.map(({ name }) => name), ...(needsMaskKey(pipeline) ? [maskKeyEnv] : [])]
  throw new ExportError({
    kind: 'config',
    what: `The pipeline cannot run: ${missing.length === 1 ? '1 thing is' : `${missing.length} things are`} missing or wrong`,
    where: pipeline.file,
    next: `Correct the following and try again:\n${missing.join('\n')}`,
  })
}

/** Checks the consent of this run to write secrets unmasked, if the policy does that. @throws ExportError `config` */
export function requireConsent(
  policy: SecretPolicy,
  allowPlaintext: boolean | undefined,
  where: string,
): void {
  if (!SECRET_POLICIES[policy].shows || allowPlaintext === true) return
  const what = `${policy} needs consent at each run, and this run was not given leave to write secrets unmasked`
  const others = SECRET_POLICY_NAMES.filter((each) => !SECRET_POLICIES[each].shows)
  const next = `Add --allow-plaintext, or choose ${others.join(', ')}.`
  throw new ExportError({ kind: 'config', what, where, next })
}
