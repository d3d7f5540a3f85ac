import { createHash } from 'node:crypto'
import { readVerifyingKey } from '../../config/index.ts'
import type { Evidence } from '../../report/index.ts'
import { readEvidence } from '../../run/index.ts'
import { command } from '../command.ts'
import { completenessText, knownNamingKey } from '../completeness-text.ts'
import { evidencePlace } from '../evidence-place.ts'
import { DONE } from '../exit-code.ts'
import { pipelineAndFormat, pipelineFrom } from '../pipeline-options.ts'
import { plainJson, plainLine } from '../plain-text.ts'
import { bytes, counted } from '../quantities.ts'
import { saveFile } from '../save-file.ts'

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
        key: {
          type: 'string',
          requiresArg: true,
          describe: 'File of the public Ed25519 key, PEM: to be packed too, and the signature has to fit it',
        },
        json: { type: 'boolean', default: false, describe: 'Print the result as JSON' },
      })
      .example('$0 evidence pipeline.yaml --output acme.tar --key pub.pem', 'Once the manifest is signed')
      .example('$0 evidence pipeline.yaml --output output/acme/_evidence.tar', 'Beside the data'),
  async run(args, io) {
    const { pipeline: file, format, key, json } = args
    const pipeline = await pipelineFrom(file, { format }, io)
    const publicKey = key === undefined ? null : await readVerifyingKey(key, io)
    const path = await evidencePlace(args.output, io.cwd, pipeline)
    const found = await readEvidence(pipeline, publicKey, await knownNamingKey(pipeline, io))
    // Loaded here, as it would only lengthen the start of what is refused.
    const { evidenceTar } = await import('../../report/index.ts')
    const { tar, files } = await evidenceTar(found, publicKey)
    await saveFile(path, tar, 'The archive')
    const packed = { output: path, bytes: tar.byteLength, sha256: sha256(tar), files }
    await io.stdout.line(json ? plainJson(packedJson(found, packed)) : packedText(found, packed, args.output))
    return DONE
  },
})

type Packed = {
  readonly output: string
  readonly bytes: number
  readonly sha256: string
  readonly files: readonly string[]
}

function sha256(tar: Uint8Array): string {
  return createHash('sha256').update(tar).digest('hex')
}

function packedJson({ manifest, complete }: Evidence, packed: Packed) {
  const { shards, rows } = manifest.totals
  return { pipeline: manifest.pipeline, ...packed, shards, rows, complete }
}

function packedText({ manifest, complete, partitions }: Evidence, packed: Packed, output: string): string {
  const { shards, rows } = manifest.totals
  return [
    `${manifest.pipeline}: evidence of ${counted(shards, 'shard')} with ${counted(rows, 'row')}: ${plainLine(output)} (${bytes(packed.bytes)})`,
    `SHA-256 ${packed.sha256}; in it: ${packed.files.join(', ')}`,
    `${completenessText({ complete, partitions })}.`,
  ].join('\n')
}
