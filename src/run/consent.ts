import { ExportError, type Pipeline } from '../core/index.ts'
import type { RunOptions } from './options.ts'

/** @throws ExportError `config` when secrets would stay unmasked and nobody said that they may */
export function requireConsent(
  { transform, file }: Pipeline,
  { allowPlaintext }: Pick<RunOptions, 'allowPlaintext'>,
): void {
  if (transform.secret !== 'plaintext' || allowPlaintext) return
  throw new ExportError(
    'config',
    'transform.secret is plaintext, and this run was not given leave to write secrets unmasked',
    file,
    'Choose redact, drop, partial or hmac, or add --allow-plaintext to this run.',
  )
}
