import {
  ExportError,
  hidesIdentity,
  isHeaderText,
  learnSecret,
  type Pipeline,
  queryLabel,
  variableNotSet,
} from '../../core/index.ts'
import type { RunOptions } from './options.ts'

/** What the secret queries of a pipeline ask for, by the name of the variable. */
export type QuerySecrets = ReadonlyMap<string, string>

/**
 * Reads the value of every secret query once for the whole run: a file that changes meanwhile must not mix the rows of
 * two secrets, and a secret that is not requested yet is to stay out of messages all the same.
 * @throws ExportError `config` when a variable is not set
 */
export async function readQuerySecrets(
  { extract, transform, file }: Pipeline,
  { readSecret, maskKey }: Pick<RunOptions, 'readSecret' | 'maskKey'>,
): Promise<QuerySecrets> {
  if (maskKey !== null) learnSecret(new TextDecoder().decode(maskKey))
  const secrets = new Map<string, string>()
  for (const query of extract.queries) {
    if (hidesIdentity(query, transform.identity)) learnSecret(queryLabel(query), 'whole')
    if (query.type !== 'secret' || secrets.has(query.secretEnv)) continue
    const secret = await readSecret(query.secretEnv)
    if (secret === null || secret === '') throw variableNotSet(query.secretEnv, file)
    learnSecret(secret)
    secrets.set(query.secretEnv, secret)
  }
  return secrets
}

/**
 * Makes sure, before anything is written, that the token or API key can be sent. That one is missing shows when it is
 * needed: a run that has nothing left to do needs none.
 * @param isNeeded whether it is to be there in any case
 * @throws ExportError `config`
 */
export async function requireSendableToken(
  { service: { auth }, file }: Pipeline,
  { readSecret }: Pick<RunOptions, 'readSecret'>,
  isNeeded = false,
): Promise<void> {
  const variable = auth.kind === 'token' ? auth.tokenEnv : auth.apiKeyEnv
  const token = await readSecret(variable)
  if (token === null || token === '') {
    if (isNeeded) throw variableNotSet(variable, file)
    return
  }
  learnSecret(token)
  if (isHeaderText(token)) return
  throw new ExportError(
    'config',
    `${variable} holds a line break, another control character or a character outside ASCII, so it can not be sent`,
    file,
    'Set it to the token or key alone.',
  )
}
