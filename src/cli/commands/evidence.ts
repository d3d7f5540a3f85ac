import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { readVerifyingKey } from '../../config/index.ts'
import { readEvidence } from '../../data-set/index.ts'
import { version } from '../../package/index.ts'
import { evidenceTar } from '../../report/index.ts'
import { command, flag, stringValue } from '../command-line/command.ts'
import { DATA_SET, dataSetFrom } from '../command-line/pipeline-options.ts'
import { requireApart } from '../results/flag-file.ts'
import { saveFile } from '../results/save-file.ts'
import { completenessText } from '../results/summary.ts'
import { DONE } from '../terminal/exit-code.ts'
import { bytes, counted, plainLine } from '../terminal/text.ts'

export const evidence = command({
  options: (yargs) =>
    yargs
      .positional('pipeline', DATA_SET)
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
      .example('$0 evidence pipeline.yaml --output acme.tar --key pub.pem', 'Once the manifest is signed'),
  async run(args, io) {
    const { key, json } = args
    const { pipeline } = await dataSetFrom({ pipeline: args.pipeline }, io)
    const publicKey = key === undefined ? null : await readVerifyingKey(key, io)
    const path = resolve(io.cwd, args.output)
    await requireApart({ path, what: 'The archive' }, [pipeline])
    const found = await readEvidence(pipeline, publicKey, version)
    const { tar, files } = await evidenceTar(found, publicKey)
    await saveFile(path, tar, 'The archive')
    const packed = { output: path, bytes: tar.byteLength, sha256: sha256(tar), files }
    await io.stdout.result(json, packedJson(found, packed), [packedText(found, packed, args.output)])
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
