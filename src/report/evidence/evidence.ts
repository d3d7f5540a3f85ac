import type { Manifest } from '../../state/index.ts'

/** What there is to show of an export that was signed. */
export type Evidence = {
  readonly manifest: Manifest
  /** As it stands on the disk, which is what was signed. */
  readonly manifestBytes: Uint8Array
  readonly signature: Uint8Array
  /** Whether everything that the pipeline file plans was exported, as `_SUCCESS` says. */
  readonly isWhole: boolean
  /** The HTML report; null: none was made. */
  readonly report: Uint8Array | null
  /** The text that the manifest's `config_digest` is the SHA-256 of. */
  readonly settings: string
}
