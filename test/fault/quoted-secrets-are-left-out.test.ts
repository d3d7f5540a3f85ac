import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { carryOut } from '../support/in-this-process.ts'
import { CODES, QUOTATIONS } from '../support/quotations.ts'
import { some } from '../support/thorough.ts'
import { credential, type HostileService, startService } from './hostile-service.ts'
import { haystacksOf } from './leak-search.ts'

/** Stands in every text that quotes the secret. Such a text is left out as a whole, so it must be nowhere. */
const MARKER = 'quotes-it'

const QUOTED = Object.values({ ...QUOTATIONS, ...CODES })

/** Refuses each domain `d<i>` with a quotation of the secret, and has fields that are named so. */
function startQuotingService(secret: string): Promise<HostileService> {
  return startService((exchange) => {
    const { fqdn } = exchange.body.query
    const quote = QUOTED[Number(/^d(\d+)\./.exec(fqdn ?? '')?.[1] ?? -1)]
    const text = quote === undefined ? '' : `${MARKER} {"secret":"${quote(secret)}"}`
    if (quote === undefined) {
      const quotations = QUOTED.map((each) => `${MARKER} ${each(secret)}`)
      // One that would be cut in the middle of the secret.
      const cut = `${MARKER} `.padEnd(100 - secret.length + 2, 'y') + secret
      const named = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 1]))
      const broken = [
        credential(2, { ...named(quotations), id: 'x' }),
        credential(3, { ...named([cut]), id: 'x' }),
      ]
      exchange.json({ items: [credential(1, named([...quotations, cut])), ...broken], next: null })
    } else if (exchange.number % 2 === 0) exchange.json({ error: { code: 'BUSY', message: text } }, 503)
    else exchange.json({ error: { code: 'REFUSED', message: text } }, 400)
  })
}

test.each(some(['Québec2024', '😀2024ab', 'Ærø=daf%41e', 'hunté', 'p"\\w&é;9', 'ключ2024'], 2))(
  'a secret query is in no output, log or file, however the service quotes it: %s',
  async (secret) => {
    const service = await startQuotingService(secret)
    const folder = await mkdtemp(join(tmpdir(), 'spillway-quoted-'))
    try {
      const domains = QUOTED.flatMap((_, i) => [`d${i}.example`, `fine-${i}.example`])
      await writeFile(
        join(folder, 'pipeline.yaml'),
        `
name: quoted
service: { base_url: "${service.baseUrl}", requests_per_second: 1000, retries: 1 }
extract:
  domains: [${domains.join(', ')}]
  queries: [{ type: secret, secret_env: LEAKED_PASSWORD }]
  concurrency: 1
transform: { max_quarantined: 100% }
load: { format: csv, path: out }
`,
      )
      const env = { SPILLWAY_TOKEN: 'tok.M4rlin-0b7de911', LEAKED_PASSWORD: secret }
      const call = (...args: string[]) => carryOut({ args, cwd: folder, env })
      const run = await call(
        'run',
        'pipeline.yaml',
        '--json',
        '--log-level',
        'trace',
        '--log-file',
        'run.log',
      )
      expect(run.code, run.stderr).toBe(1)
      const status = await call('status', 'pipeline.yaml', '--json')
      expect(JSON.parse(status.stdout).totals.failed).toBe(QUOTED.length)
      const results = [run, status, await call('status', 'pipeline.yaml')]
      const texts = [
        ...results.flatMap(({ stdout, stderr }, i) => [
          { name: `stdout ${i}`, bytes: Buffer.from(stdout) },
          { name: `stderr ${i}`, bytes: Buffer.from(stderr) },
        ]),
        ...(await haystacksOf(folder)),
      ]
      const names = texts.map(({ name }) => name)
      expect(names).toEqual(
        expect.arrayContaining(['run.log', 'out/_manifest.json', 'out/_state/checkpoint.jsonl']),
      )
      // A failure of this line shows only where it is, and the first of them.
      const leaks = texts.flatMap(({ name, bytes }) => {
        const at = bytes.indexOf(MARKER)
        return at === -1 ? [] : [`${name}: ${bytes.toString('utf8', at, at + 120)}`]
      })
      expect(leaks).toEqual([])
    } finally {
      await service.close()
      await rm(folder, { recursive: true, force: true })
    }
  },
)
