import type { KeyObject } from 'node:crypto'
import { packTar } from 'modern-tar'
import type { Evidence } from './evidence.ts'
import { checksumLines } from './evidence.ts'
import { readmeText } from './readme.ts'

export type PackedEvidence = {
  readonly tar: Uint8Array
  /** Names in it, sorted. */
  readonly files: readonly string[]
}

/**
 * Packs what shows that an export is complete and untouched, and how to check it; never rows. The same evidence gives
 * the same bytes: names are sorted, and all that a file system would add is left out.
 * @param publicKey to be packed too; null: none
 */
export async function evidenceTar(evidence: Evidence, publicKey: KeyObject | null): Promise<PackedEvidence> {
  const files = filesOf(evidence, publicKey).sort(([a], [b]) => (a < b ? -1 : 1))
  const mtime = timeOf(evidence)
  const tar = await packTar(
    files.map(([name, content]) => {
      const body = Buffer.from(content)
      const header = {
        name,
        type: 'file',
        size: body.byteLength,
        mtime,
        mode: 0o644,
        uid: 0,
        gid: 0,
      } as const
      return { header, body }
    }),
  )
  return { tar, files: files.map(([name]) => name) }
}

function filesOf(
  evidence: Evidence,
  publicKey: KeyObject | null,
): [name: string, content: string | Uint8Array][] {
  const { manifest, manifestBytes, signature, isMarked, report, settings } = evidence
  return [
    ['_manifest.json', manifestBytes],
    ['_manifest.sig', signature],
    ...(isMarked ? [['_SUCCESS', ''] as [string, string]] : []),
    ...(report === null ? [] : [['_report.html', report] as [string, Uint8Array]]),
    ['settings.json', settings],
    ['SHA256SUMS', checksumLines(manifest)],
    ...(publicKey === null ? [] : [['public-key.pem', pemOf(publicKey)] as [string, string]]),
    ['README.txt', readmeText(evidence, publicKey)],
  ]
}

function pemOf(publicKey: KeyObject): string {
  return publicKey.export({ type: 'spki', format: 'pem' }).toString()
}

/** When the last run ended, to the second. */
function timeOf({ manifest }: Evidence): Date {
  const run = manifest.runs.at(-1)
  const ms = Date.parse(run?.finished_at ?? run?.started_at ?? '')
  return new Date(Number.isNaN(ms) ? 0 : Math.floor(ms / 1000) * 1000)
}
