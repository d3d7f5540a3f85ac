import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { knownNamingKey, readVerifyingKey } from '../../config/index.ts'
import { ExportError, type Pipeline } from '../../core/index.ts'
import { readEvidence } from '../../data-set/index.ts'
import { evidenceTar } from '../../report/index.ts'
import { command, flag, stringValue } from '../command-line/command.ts'
import { pipelineAndFormat, pipelineToRead } from '../command-line/pipeline-options.ts'
import { codeOf, pathWithin, saveFile } from '../results/save-file.ts'
import { completenessText } from '../results/summary.ts'
import { DONE } from '../terminal/exit-code.ts'
import { bytes, counted, plainJson, plainLine } from '../terminal/text.ts'

/** Names below load.path that are in use. */
const OWN: ReadonlySet<string> = new Set([
  '_manifest.json',
  '_manifest.sig',
  '_quarantine',
  '_report.html',
  '_state',
  '_SUCCESS',
])

const MAGIC = 'ustar'

const MAGIC_AT = 257

export const evidence = command({
  options: (yargs) =>
    pipelineAndFormat(yargs)
      .options({
        output: {
          type: 'string',
          demandOption: true,
          requiresArg: true,
          describe: 'The archive, .tar; one of that name is replaced',
        },
        key: stringValue(
          'File of the public Ed25519 key, PEM: to be packed too, and the signature has to fit it',
        ),
        json: flag('Print the result as JSON'),
      })
      .example('$0 evidence pipeline.yaml --output acme.tar --key pub.pem', 'Once the manifest is signed')
      .example('$0 evidence pipeline.yaml --output output/acme/_evidence.tar', 'Beside the data'),
  async run(args, io) {
    const { pipeline: file, format, key, json } = args
    const pipeline = await pipelineToRead(file, { format }, io)
    const publicKey = key === undefined ? null : await readVerifyingKey(key, io)
    const path = await evidencePath(args.output, io.cwd, pipeline)
    const found = await readEvidence(pipeline, publicKey, await knownNamingKey(pipeline, io))
    const { tar, files } = await evidenceTar(found, publicKey)
    await saveFile(path, tar, 'The archive')
    const packed = { output: path, bytes: tar.byteLength, sha256: sha256(tar), files }
    await io.stdout.line(json ? plainJson(packedJson(found, packed)) : packedText(found, packed, args.output))
    return DONE
  },
})

type Found = Awaited<ReturnType<typeof readEvidence>>

type Packed = {
  readonly output: string
  readonly bytes: number
  readonly sha256: string
  readonly files: readonly string[]
}

function sha256(tar: Uint8Array): string {
  return createHash('sha256').update(tar).digest('hex')
}

function packedJson({ manifest, complete }: Found, packed: Packed) {
  const { shards, rows } = manifest.totals
  return { pipeline: manifest.pipeline, ...packed, shards, rows, complete }
}

function packedText({ manifest, completeness }: Found, packed: Packed, output: string): string {
  const { shards, rows } = manifest.totals
  return [
    `${manifest.pipeline}: evidence of ${counted(shards, 'shard')} with ${counted(rows, 'row')}: ${plainLine(output)} (${bytes(packed.bytes)})`,
    `SHA-256 ${packed.sha256}; in it: ${packed.files.join(', ')}`,
    `${completenessText(completeness)}.`,
  ].join('\n')
}

/**
 * Checks the path of an archive. It may not be in the data set, unless its name begins with `_` (readers take other
 * files for data), and may not replace a file that is no archive.
 * @returns the absolute path
 * @throws ExportError `config`
 */
async function evidencePath(output: string, cwd: string, { load }: Pipeline): Promise<string> {
  const path = resolve(cwd, output)
  const within = await pathWithin(path, load.path)
  const [first = ''] = within ?? []
  if (within !== null && (!first.startsWith('_') || OWN.has(first))) throw amongData(output)
  const found = await kindOf(path)
  if (found === 'other') throw notAnArchive(output)
  return path
}

async function kindOf(path: string): Promise<'nothing' | 'archive' | 'other'> {
  try {
    const handle = await open(path, 'r')
    try {
      if (!(await handle.stat()).isFile()) return 'other'
      const { buffer } = await handle.read(Buffer.alloc(MAGIC.length), 0, MAGIC.length, MAGIC_AT)
      return buffer.toString('latin1') === MAGIC ? 'archive' : 'other'
    } finally {
      await handle.close()
    }
  } catch (error) {
    // Other errors show when the file is written.
    return codeOf(error) === 'ENOENT' ? 'nothing' : 'other'
  }
}

function amongData(output: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'The archive would lie in the folder of the data set, where readers take it for data',
    where: output,
    next: 'Write it elsewhere, or give it a name that begins with _ and is not used there yet.',
  })
}

function notAnArchive(output: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'There is something of that name that is no tar archive, so it is not replaced',
    where: output,
    next: 'Choose another name.',
  })
}
