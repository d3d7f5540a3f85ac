import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { inSnakeCase } from '../../core/index.ts'
import { type Signed, signDataSet } from '../../data-set/index.ts'
import { readSigningKey } from '../../pipeline/index.ts'
import { flag, requiredValue } from '../command-line/command.ts'
import { changing, dataSetCommand } from '../command-line/pipeline-options.ts'
import { verdictLines } from '../results/verdict.ts'
import { bytes, counted, shownPath } from '../terminal/text.ts'

export const sign = dataSetCommand('change', {
  flags: {
    key: requiredValue(
      'File of the private Ed25519 key, PEM; SPILLWAY_SIGNING_PASSPHRASE opens an encrypted one',
    ),
    json: flag('Print the result as JSON'),
  },
  examples: [
    ['$0 sign pipeline.yaml --key key.pem', 'Write _manifest.sig beside the manifest'],
    ['$0 verify pipeline.yaml && $0 sign pipeline.yaml --key key.pem', 'Read every byte before'],
  ],
  epilogue: '`openssl genpkey -algorithm ed25519 -out key.pem` makes a key.',
  async run(args, io, dataSet) {
    if (await isOpenToOthers(resolve(io.cwd, args.key))) {
      io.log('warn', 'every user of this machine may read or change the signing key; chmod 600 it', {
        path: args.key,
      })
    }
    const signed = await changing(io, async (options) =>
      signDataSet(dataSet, await readSigningKey(args.key, io), options),
    )
    const { verdict, ...figures } = signed
    const { complete } = verdict
    await io.stdout.result(args.json, inSnakeCase<unknown>({ ...figures, complete }), [
      ...signedLines(signed, io.cwd),
      ...verdictLines(verdict, io.stdout.style),
    ])
  },
})

/** Ignores the group, by which services are given keys, and Windows, whose permissions Node.js emulates. */
async function isOpenToOthers(path: string): Promise<boolean> {
  const found = process.platform === 'win32' ? null : await stat(path).catch(() => null)
  return found !== null && (found.mode & 0o007) !== 0
}

function signedLines({ pipeline, signature, keySha256, shards, rows, ...signed }: Signed, cwd: string) {
  return [
    `${pipeline}: signed: ${counted(shards, 'shard')} with ${counted(rows, 'row')} (${bytes(signed.bytes)})`,
    `signature: ${shownPath(signature, cwd)}, Ed25519, SHA-256 of the public key ${keySha256}`,
  ]
}
