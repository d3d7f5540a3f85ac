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
import { some } from '../support/thorough.ts'
import { type Environment, PIPELINE, type PipelineParts, type Workspace } from '../support/workspace.ts'
import { ONE_SLOT, threeMonths, trial } from './trial.ts'

const KEY = { SPILLWAY_MASK_KEY: 'k'.repeat(32) }
/** Exports the first month whole and the second one half. */
const BEGUN: PipelineParts = {
  extract: { ...ONE_SLOT, max_requests: 3 },
  transform: { secret: 'hmac' },
}
const PLAINTEXT = { transform: { secret: 'plaintext' } }

type Trial = {
  readonly name: string
  /** What the pipeline file has instead. */
  readonly parts?: PipelineParts
  /** What is done to the data set. */
  readonly harm?: (output: string, call: Workspace['call']) => void | Promise<void>
  readonly env?: Environment
  readonly flags?: readonly string[]
  readonly code: number
  /** What all three commands print. */
  readonly message: string
}

const trials: readonly Trial[] = [
  {
    name: 'another masking',
    parts: { ...BEGUN, transform: { secret: 'redact' } },
    code: 2,
    message: 'transform.secret was "hmac" and is now "redact"',
  },
  {
    name: 'the folder of another pipeline',
    parts: { ...BEGUN, name: 'other' },
    code: 2,
    message: 'The folder belongs to the pipeline "trial"',
  },
  {
    name: 'a window that is half exported and cut',
    flags: ['--until', '2024-02-15'],
    code: 2,
    message: '2024-02-01',
  },
  { name: 'another mask key', env: { SPILLWAY_MASK_KEY: 'l'.repeat(32) }, code: 2, message: 'mask key' },
  { name: 'no mask key', env: { SPILLWAY_MASK_KEY: '' }, code: 2, message: 'SPILLWAY_MASK_KEY is empty' },
  {
    name: 'plaintext without consent',
    parts: { ...PLAINTEXT, name: 'plain', load: { path: 'plain' } },
    code: 2,
    message: 'plaintext needs consent',
  },
  {
    name: 'plaintext with consent, after another masking',
    parts: { ...BEGUN, ...PLAINTEXT },
    flags: ['--allow-plaintext'],
    code: 2,
    message: 'transform.secret was',
  },
  {
    name: 'a damaged checkpoint',
    harm: (output) => damageLine(join(output, '_state/checkpoint.jsonl')),
    code: 1,
    message: 'of the checkpoint does not match its checksum',
  },
  {
    name: 'a lost shard',
    harm: (output) => rmSync(firstShard(output)),
    code: 1,
    message: 'A shard is missing',
  },
  {
    name: 'a shard that grew',
    harm: (output) => appendFileSync(firstShard(output), 'x'),
    code: 1,
    message: 'A shard holds',
  },
  {
    name: 'a file where the data set should be',
    harm: (output) => {
      rmSync(output, { recursive: true })
      writeFileSync(output, '')
    },
    code: 2,
    message: 'A part of the path is a file',
  },
  {
    name: 'a link among the folders',
    harm: (output) => {
      rmSync(output, { recursive: true })
      mkdirSync(join(output, '../elsewhere'))
      mkdirSync(output)
      symlinkSync('../elsewhere', join(output, 'credentials'))
    },
    code: 1,
    message: 'symbolic link',
  },
  {
    name: 'tables of another program',
    parts: { ...BEGUN, load: { table_formats: ['delta'] } },
    harm: (output) => {
      mkdirSync(join(output, '_delta_log'))
      writeFileSync(join(output, '_delta_log/00000000000000000000.json'), '{"metaData":{"id":"theirs"}}\n')
    },
    code: 2,
    message: 'Another program',
  },
  {
    name: 'a lost list of forgotten people',
    async harm(output, call) {
      writeFileSync(join(output, '../people.txt'), 'somebody@scatterholt.com\n')
      await call('forget', '--identities', 'people.txt', '--yes')
      rmSync(join(output, '_state/suppression.json'))
    },
    code: 1,
    message: 'The list of forgotten people',
  },
]

it.each(some(trials, 4))('$name: plan and check exit $code as run does', async (given) => {
  const { parts = BEGUN, harm = () => {}, env = {}, flags = [], code, message } = given
  const here = await trial(BEGUN, {}, KEY)
  expect((await here.call('run')).code).toBe(4)
  await harm(here.output, here.call)
  await here.write(threeMonths(parts))
  const verdicts = []
  const commands = ['plan', 'check', 'run']
  for (const command of commands) {
    const { code, stderr } = await here.with(env).call(command, ...flags)
    // Each is reported once, not by every step.
    verdicts.push({ command, code, message: stderr.split(message).length - 1 })
  }
  expect(verdicts).toEqual(commands.map((command) => ({ command, code, message: 1 })))
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

/** Changes a digit in the second line. */
function damageLine(path: string): void {
  const text = readFileSync(path, 'utf8')
  const at = text.indexOf('"kind":"run"')
  writeFileSync(path, `${text.slice(0, at)}"kind":"rum"${text.slice(at + 12)}`)
}

function firstShard(output: string): string {
  const files = readdirSync(join(output, 'credentials'), { recursive: true, encoding: 'utf8' })
  return join(output, 'credentials', files.filter((name) => name.endsWith('.parquet')).sort()[0] ?? '')
}
