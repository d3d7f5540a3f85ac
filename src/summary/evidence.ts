import { createHash, type KeyObject } from 'node:crypto'
import { kindOfRows, numberOf } from '../core/index.ts'
import { keyDigest, type Manifest, SHA256SUMS_OF_MANIFEST, type Verdict } from '../state/index.ts'
import { byText, periodOf, reasonsOf } from './contents.ts'

export type Evidence = {
  readonly manifest: Manifest
  /** As on the disk: these bytes are signed. */
  readonly manifestBytes: Uint8Array
  readonly signature: Uint8Array
  /** Whether there is `_SUCCESS`. */
  readonly isMarked: boolean
  /** For what the pipeline file plans. */
  readonly verdict: Verdict
  readonly summaryPage: Uint8Array
  /** The text that the manifest's `config_digest` is the SHA-256 of. */
  readonly settings: string
}

/** Describes the archive, and how to check it with openssl and sha256sum. Plain ASCII, short lines. */
function readmeText(evidence: Evidence, publicKey: KeyObject | null, contents: string): string {
  const { manifest } = evidence
  const key = publicKey === null ? 'pub.pem' : 'public-key.pem'
  const { rows, shards } = manifest.totals
  return `${verdictText(evidence.verdict)}

Evidence of the export "${manifest.pipeline}"

${numberOf(shards, 'file')} with ${numberOf(rows, 'row')} of ${kindOfRows(manifest.resource)}.
${wrapped(`The last run: ${lastRun(manifest)}.`)}
The files themselves are not in this archive, and no rows are.

${forgottenText(manifest)}${contents}

How to check it: OpenSSL 3.0 or later, sha256sum, sed and diff are enough.
Unpack the archive, and go to where it is unpacked.

1. The manifest is the one that was signed. This says "Signature Verified
   Successfully":

   openssl pkeyutl -verify -pubin -inkey ${key} \\
     -rawin -in _manifest.json -sigfile _manifest.sig

${aboutKey(publicKey)}

2. The list of checksums is the manifest's. This prints nothing:

   ${SHA256SUMS_OF_MANIFEST.replace(" '", " \\\n     '").replace("' ", "' \\\n     ")} | diff - SHA256SUMS

3. The files are as they were exported. DATA is the folder of the data set; this
   prints nothing:

   (cd DATA && sha256sum --check --strict --quiet) < SHA256SUMS

   None was added: this prints ${shards}.

   find DATA/${kindOfRows(manifest.resource)} -type f | wc -l

4. The settings of rows and requests are those of the export; queries and
   windows are in the manifest itself ("scope"). This prints its config_digest,
   ${createHash('sha256').update(evidence.settings).digest('hex')}:

   sha256sum settings.json
`
}

/** Not signed. What it is made of is in the manifest, which is. */
function verdictText(verdict: Verdict): string {
  const { headline, why, next } = verdict
  const period = periodOf(verdict)
  const sentences = [
    `The export is ${headline}, as of the last run (this part is not signed).`,
    ...(period === null ? [] : [`It covers ${period}.`]),
    ...(why === '' ? [] : [`${why}.`]),
    ...(next === '' ? [] : [next]),
    ...reasonsOf(verdict).map((clause) => `BUT ${clause}.`),
  ]
  return [
    ...sentences.map(wrapped),
    'The manifest, which is signed, lists the queries, the windows, and the state of',
    'each partition.',
  ].join('\n')
}

const MAX_LINE = 80

function wrapped(text: string): string {
  return text.replace(new RegExp(`(.{1,${MAX_LINE}})(?: |$)`, 'g'), '$1\n').trimEnd()
}

function lastRun({ runs }: Manifest): string {
  const run = runs.at(-1)
  if (run === undefined) return 'none'
  return `${run.status}, ${run.finished_at ?? 'killed'}, spillway ${run.version}, ${byText(run.by)}`
}

/** When people were forgotten, and how many: never whom. */
function forgottenText({ forgotten }: Manifest): string {
  if (forgotten.length === 0) return ''
  const lines = forgotten.map(
    ({ at, identities, rows, quarantined }) =>
      `  ${at}  ${numberOf(identities, 'identity', 'identities')}, ${numberOf(rows, 'row')}, ${numberOf(quarantined, 'quarantined item')}`,
  )
  return `People were forgotten (the manifest lists this too, and is signed):\n\n${lines.join('\n')}\n\n`
}

function contents(files: readonly PackedFile[]): string {
  return files.map(([name, , what]) => `  ${name.padEnd(16)}${what}`).join('\n')
}

function aboutKey(publicKey: KeyObject | null): string {
  if (publicKey === null) {
    return `   pub.pem is the public key of whoever signed. Get it from them, not from
   whoever gave you this archive.`
  }
  return `   Whoever can change this archive can change the key in it: compare it with
   what the signer says. This prints
   ${keyDigest(publicKey)}:

   openssl pkey -pubin -in public-key.pem -outform DER | sha256sum`
}

/** Never rows. The same evidence gives the same bytes: names are sorted, metadata of the file system is left out. */
export async function evidenceTar(evidence: Evidence, publicKey: KeyObject | null) {
  const files = filesOf(evidence, publicKey).sort(([a], [b]) => (a < b ? -1 : 1))
  const common = { mtime: timeOf(evidence), mode: 0o644, uid: 0, gid: 0 }
  // Loaded here, because every run imports this file with the summary page.
  const { packTar } = await import('modern-tar')
  const tar = await packTar(
    files.map(([name, content]) => {
      const body = Buffer.from(content)
      return { header: { name, type: 'file', size: body.byteLength, ...common }, body }
    }),
  )
  return { tar, files: files.map(([name]) => name) }
}

type PackedFile = readonly [name: string, content: string | Uint8Array, what: string]

function filesOf(evidence: Evidence, publicKey: KeyObject | null): PackedFile[] {
  const { manifest, manifestBytes, signature, isMarked, summaryPage, settings } = evidence
  const checksums = manifest.shards.map(({ sha256, path }) => `${sha256}  ${path}\n`).join('')
  const all: (PackedFile | false)[] = [
    ['_manifest.json', manifestBytes, 'what was requested; every file, its rows, bytes and SHA-256'],
    ['_manifest.sig', signature, 'an Ed25519 signature over the bytes of _manifest.json'],
    isMarked && ['_SUCCESS', '', 'was there: all that was planned was exported (not signed)'],
    ['_report.html', summaryPage, 'a summary for people, written anew (not signed)'],
    ['settings.json', settings, 'what a row is and how it is masked; no secrets'],
    ['SHA256SUMS', checksums, 'the checksums of the files, for sha256sum'],
    publicKey !== null && ['public-key.pem', pemOf(publicKey), 'the key that the signature is checked with'],
  ]
  const files = all.filter((file) => file !== false)
  return [...files, ['README.txt', readmeText(evidence, publicKey, contents(files)), '']]
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
