import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { readEvidence } from '../../data-set/index.ts'
import { version } from '../../package/index.ts'
import { readVerifyingKey } from '../../pipeline/index.ts'
import { evidenceTar } from '../../summary/index.ts'
import { command, flag, requiredValue, stringValue } from '../command-line/command.ts'
import { DATA_SET, dataSetFrom } from '../command-line/pipeline-options.ts'
import { requireApart } from '../results/flag-file.ts'
import { saveFile } from '../results/save-file.ts'
import { completenessText } from '../results/summary.ts'
import { bytes, counted, plainLine } from '../terminal/text.ts'

export const evidence = command({
  positionals: { pipeline: DATA_SET },
  flags: {
    output: requiredValue('The archive, .tar; one of that name is replaced'),
    key: stringValue(
      'File of the public Ed25519 key, PEM: to be packed too, and the signature has to fit it',
    ),
    json: flag('Print the result as JSON'),
  },
  examples: [['$0 evidence pipeline.yaml --output acme.tar --key pub.pem', 'Once the manifest is signed']],
  async run(args, io) {
    const { key, json } = args
    const { pipeline } = await dataSetFrom({ pipeline: args.pipeline }, io, 'status')
    const publicKey = key === undefined ? null : await readVerifyingKey(key, io)
    const output = resolve(io.cwd, args.output)
    await requireApart({ path: output, what: 'The archive' }, [pipeline])
    const found = await readEvidence(pipeline, publicKey, version)
    const { tar, files } = await evidenceTar(found, publicKey)
    await saveFile(output, tar, 'The archive')
    const { manifest, complete, completeness } = found
    const { shards, rows } = manifest.totals
    const size = tar.byteLength
    const sha256 = createHash('sha256').update(tar).digest('hex')
    const packed = { pipeline: manifest.pipeline, output, bytes: size, sha256, files, shards, rows, complete }
    await io.stdout.result(json, packed, [
      `${manifest.pipeline}: evidence of ${counted(shards, 'shard')} with ${counted(rows, 'row')}: ${plainLine(args.output)} (${bytes(size)})`,
      `SHA-256 ${sha256}; in it: ${files.join(', ')}`,
      `${completenessText(completeness)}.`,
    ])
  },
})
