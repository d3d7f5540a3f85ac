import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { type Environment, PIPELINE, type PipelineParts, type Workspace } from '../support/workspace.ts'
import { ONE_SLOT, threeMonths, trial } from './trial.ts'

const KEY = { SPILLWAY_MASK_KEY: 'k'.repeat(32) }
/** Exports the first month whole and the second one half. */
const BEGUN: PipelineParts = { extract: { ...ONE_SLOT, max_requests: 3 }, transform: { secret: 'hmac' } }
const PLAINTEXT = { transform: { secret: 'plaintext' } }

type Trial = {
  readonly parts?: PipelineParts
  readonly harm?: (output: string, call: Workspace['call']) => void | Promise<void>
  readonly env?: Environment
  readonly flags?: readonly string[]
  /** Default: 2. */
  readonly code?: number
}

/** By what all three commands print. */
const trials: Readonly<Record<string, Trial>> = {
  'transform.secret was "hmac" and is now "redact"': { parts: { ...BEGUN, transform: { secret: 'redact' } } },
  'The folder belongs to the pipeline "trial"': { parts: { ...BEGUN, name: 'other' } },
  // A window that is half exported is cut.
  '2024-02-01': { flags: ['--until', '2024-02-15'] },
  'mask key': { env: { SPILLWAY_MASK_KEY: 'l'.repeat(32) } },
  'SPILLWAY_MASK_KEY is not set, or empty': { env: { SPILLWAY_MASK_KEY: '' } },
  'plaintext needs consent': { parts: { ...PLAINTEXT, name: 'plain', load: { path: 'plain' } } },
  // With consent, after another masking.
  'transform.secret was': { parts: { ...BEGUN, ...PLAINTEXT }, flags: ['--allow-plaintext'] },
  'of the checkpoint was changed': {
    harm(output) {
      const path = join(output, '_state/checkpoint.jsonl')
      writeFileSync(path, readFileSync(path, 'utf8').replace('"kind":"run"', '"kind":"rum"'))
    },
    code: 1,
  },
  'A shard is missing': { harm: async (output) => rmSync(await firstShard(output)), code: 1 },
  'A shard holds': { harm: async (output) => appendFileSync(await firstShard(output), 'x'), code: 1 },
  'A part of the path is a file': {
    harm: (output) => {
      rmSync(output, { recursive: true })
      writeFileSync(output, '')
    },
  },
  'symbolic link': {
    harm: (output) => {
      rmSync(output, { recursive: true })
      mkdirSync(join(output, '../elsewhere'))
      mkdirSync(output)
      symlinkSync('../elsewhere', join(output, 'credentials'))
    },
    code: 1,
  },
  'Another program': {
    parts: { ...BEGUN, load: { table_formats: ['delta'] } },
    harm: (output) => {
      mkdirSync(join(output, '_delta_log'))
      writeFileSync(join(output, '_delta_log/00000000000000000000.json'), '{"metaData":{"id":"theirs"}}\n')
    },
  },
  'The list of forgotten people': {
    async harm(output, call) {
      writeFileSync(join(output, '../people.txt'), 'somebody@scatterholt.com\n')
      await call('forget', '--identities', 'people.txt', '--yes')
      rmSync(join(output, '_state/suppression.json'))
    },
    code: 1,
  },
}

it.each(some(Object.entries(trials), 4))('plan and check say %s as run does', async (message, given) => {
  const { parts = BEGUN, harm = () => {}, env = {}, flags = [], code = 2 } = given
  const here = await trial(BEGUN, {}, KEY)
  expect((await here.call('run')).code).toBe(4)
  await harm(here.output, here.call)
  await here.write(threeMonths(parts))
  for (const command of ['plan', 'check', 'run']) {
    const { stderr } = await exits(code, here.with(env).call(command, ...flags))
    // Each is reported once, not by every step.
    expect([command, stderr.split(message).length - 1]).toEqual([command, 1])
  }
  expect(here.searches()).toHaveLength(3)
})

it('plan and check succeed where run resumes, with consent or with part of the queries', async () => {
  const queries = [{ type: 'domain', fqdn: 'quillmere.net' }]
  const here = await trial({ ...PLAINTEXT, extract: { queries } }, {}, KEY)
  for (const part of [[], ['--domain', 'quillmere.net']])
    for (const [command = '', ...flags] of [['plan'], ['check'], ['run', '--no-progress']]) {
      const ended = await here.call(command, '--allow-plaintext', ...flags, ...part)
      expect(ended).toMatchObject({ code: 0, stderr: '' })
    }
})

it('plan and check work while a run goes on, and change nothing', async () => {
  const { sandbox, output, start, call, json } = await trial(
    { extract: ONE_SLOT },
    { faults: [{ kind: 'hang', requests: [4] }] },
  )
  const running = start('run', PIPELINE, '--log-level', 'debug')
  await running.until((stderr) => sandbox.requests.length > 3 && stderr.includes('shard published'))
  const before = readdirSync(output, { recursive: true }).sort()
  expect((await json('plan')).value).toMatchObject({ partitions: { done: 1, partial: 1, pending: 1 } })
  expect(await call('check')).toMatchObject({ code: 0, stderr: '' })
  expect(readdirSync(output, { recursive: true }).sort()).toEqual(before)
})

const firstShard = async (output: string): Promise<string> => join(output, (await shardPaths(output))[0]!)
