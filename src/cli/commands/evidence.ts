import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { readEvidence } from '../../data-set/index.ts'
import { version } from '../../package/index.ts'
import { readVerifyingKey } from '../../pipeline/index.ts'
import { evidenceTar } from '../../summary/index.ts'
import { flag, requiredValue, stringValue } from '../command-line/command.ts'
import { dataSetCommand } from '../command-line/pipeline-options.ts'
import { requireApart, saveFile } from '../results/save-file.ts'
import { verdictLines } from '../results/verdict.ts'
import { bytes, counted, plainLine } from '../terminal/text.ts'

export const evidence = dataSetCommand('status', {
  flags: {
    output: requiredValue('The archive, .tar; one of that name is replaced'),
    key: stringValue(
      'File of the public Ed25519 key, PEM: to be packed too, and the signature has to fit it',
    ),
    json: flag('Print the result as JSON'),
  },
  examples: [['$0 evidence pipeline.yaml --output acme.tar --key pub.pem', 'Once the manifest is signed']],
  async run(args, io, dataSet) {
    const { cwd } = io
    const output = resolve(cwd, args.output)
    await requireApart(output, 'The archive', [dataSet.pipeline])
    const key = args.key === undefined ? null : await readVerifyingKey(args.key, io)
    const found = await readEvidence(dataSet, key, version)
    const { manifest, verdict } = found
    const { tar, files } = await evidenceTar(found, key)
    await saveFile(output, tar, 'The archive')
    const { pipeline } = manifest
    const { shards, rows } = manifest.totals
    const { complete, covers } = verdict
    const size = tar.byteLength
    const sha256 = createHash('sha256').update(tar).digest('hex')
    await io.stdout.result(
      args.json,
      { pipeline, output, bytes: size, sha256, files, shards, rows, complete, covers },
      [
        `${pipeline}: evidence of ${counted(shards, 'shard')} with ${counted(rows, 'row')}: ${plainLine(args.output)} (${bytes(size)})`,
        `SHA-256 ${sha256}; in it: ${files.join(', ')}`,
        ...verdictLines(verdict, io.stdout.style),
      ],
    )
  },
})
