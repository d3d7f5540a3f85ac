import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { inThisProcess } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'
import { startSandbox } from '../support/sandbox.ts'
import { PIPELINE, type PipelineParts, SMALL, type Workspace, workspaceFor } from '../support/workspace.ts'
import { runCli } from './support.ts'

/** A workspace whose commands are processes. One that waits for a pipe ends with its test. */
async function workspace(parts: PipelineParts): Promise<Workspace> {
  const env = { SPILLWAY_MASK_KEY: 'k'.repeat(32), LEAKED: 'sunflower-42' }
  return workspaceFor(await startSandbox({ ...SMALL, invalidRate: 0.2 }), parts, env, (command) =>
    runCli({ ...command, onStart: () => {} }),
  )
}

/** Runs `plan` in this process. @returns also its processor time, which other processes do not lengthen */
async function timedPlan({ folder, env }: Workspace) {
  const before = process.cpuUsage()
  const { code, stderr } = await inThisProcess(['plan', PIPELINE], folder, env)
  const { user, system } = process.cpuUsage(before)
  return { code, stderr, cpuMs: (user + system) / 1000 }
}

function pipe(path: string): void {
  rmSync(path, { force: true, recursive: true })
  execFileSync('mkfifo', [path])
}

async function exported(): Promise<Workspace> {
  const here = await workspace({
    transform: { secret: 'hmac' },
    extract: { domains_file: 'domains.txt', queries: [{ type: 'secret', secret_env: 'LEAKED' }] },
    load: { format: 'csv' },
  })
  writeFileSync(join(here.folder, 'domains.txt'), 'scatterholt.com\n')
  await exits(0, here.call('run'))
  return here
}

describe.concurrent('a pipe instead of a file is refused at once', () => {
  const inputs = [
    ['the pipeline', 'pipeline.yaml', () => ({}), 'is no regular file'],
    ['domains_file', 'domains.txt', () => ({}), 'is no regular file'],
    [
      'the token',
      'token',
      (path: string) => ({ SPILLWAY_TOKEN: '', SPILLWAY_TOKEN_FILE: path }),
      'TOKEN_FILE',
    ],
    [
      'the mask key',
      'key',
      (path: string) => ({ SPILLWAY_MASK_KEY: '', SPILLWAY_MASK_KEY_FILE: path }),
      'KEY_FILE',
    ],
    ['a secret', 'secret', (path: string) => ({ LEAKED: '', LEAKED_FILE: path }), 'LEAKED_FILE'],
  ] as const
  test.each(inputs)('%s', async (_name, file, env, said) => {
    const here = await exported()
    const path = join(here.folder, file)
    pipe(path)
    for (const command of ['run', 'check']) {
      const { code, signal, stderr } = await here.with(env(path)).call(command)
      expect({ code, signal }, stderr).toEqual({ code: 2, signal: null })
      expect(stderr).toContain(said)
      expect(stderr).toContain('no regular file')
    }
    // status needs the place of the data set alone, so it works without the rest.
    const { code, signal, stderr } = await here.with(env(path)).call('status')
    expect({ code, signal }, stderr).toEqual({ code: file === 'pipeline.yaml' ? 2 : 0, signal: null })
  })

  const files = [
    ['the checkpoint', '_state/checkpoint.jsonl', ['run', 'status', 'plan']],
    ['a lock', '_state/lock.0123456789ab', ['run']],
    ['the manifest', '_manifest.json', ['verify']],
    ['a shard', '*', ['verify', 'run']],
  ] as const
  test.each(files)('%s', async (_name, file, commands) => {
    const here = await exported()
    const path = file === '*' ? aShard(here.output) : join(here.output, file)
    pipe(path)
    for (const command of commands) {
      const { code, signal, stderr } = await here.call(command)
      expect({ code: [1, 2].includes(code ?? 0), signal }, stderr).toEqual({ code: true, signal: null })
    }
  })

  test('a commit with the rows of an open shard, and the quarantine', async () => {
    // After four pages no query is done, so the next run needs all files.
    const here = await workspace({
      extract: { domains: ['scatterholt.com', 'quillmere.net'], page_size: 10, concurrency: 2 },
      load: { format: 'csv' },
    })
    const { output } = here
    const kept = join(here.folder, 'kept')
    await exits(4, here.call('run', '--max-requests', '4'))
    cpSync(output, kept, { recursive: true })
    for (const folder of ['_state/log', '_quarantine']) {
      const files = readdirSync(join(kept, folder))
      expect(files).not.toEqual([])
      for (const name of files) {
        pipe(join(output, folder, name))
        const { code, signal, stderr } = await here.call('run')
        const about = `${folder}/${name}: ${stderr}`
        expect({ failed: code !== 0, signal }, about).toEqual({ failed: true, signal: null })
        // The run may have completed the other query.
        rmSync(output, { recursive: true })
        cpSync(kept, output, { recursive: true })
      }
    }
  })
})

function aShard(output: string): string {
  const found = readdirSync(output, { recursive: true, encoding: 'utf8' }).find((path) =>
    path.endsWith('part-00000.csv'),
  )
  return join(output, found!)
}

test('a line of a million combining marks in a file of domains is refused at once', async () => {
  const here = await workspace({ extract: { domains_file: 'domains.txt' } })
  // Marks of several combining classes, in the worst order for normalization.
  const marks = '\u0301\u0323\u0345\u0327'.repeat(250_000)
  writeFileSync(join(here.folder, 'domains.txt'), `fine.example\na${marks}.example\n`)
  const first = await timedPlan(here)
  expect(first.cpuMs).toBeLessThan(10_000)
  expect(first.code).toBe(2)
  expect(first.stderr).toMatch(
    /domains\.txt:2:1: expected a domain name .*, found "[^"]{1,200}": more than 253 characters/,
  )

  await here.write({ extract: { domains: [`a${marks}.example`] } })
  const second = await timedPlan(here)
  expect(second.code).toBe(2)
  expect(first.cpuMs + second.cpuMs).toBeLessThan(20_000)
})

test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'])(
  'a property that every object inherits is no variable: %s',
  async (name) => {
    for (const [parts, where] of [
      [{ transform: { secret: 'hmac', mask_key_env: name } }, 'transform.mask_key_env'],
      [{ service: { token_env: name } }, 'service.token_env'],
      [{ extract: { queries: [{ type: 'secret', secret_env: name }] } }, 'extract.queries'],
    ] as const) {
      const here = await workspace(parts)
      const { stderr } = await exits(2, here.call('run'))
      expect(stderr).toContain(where)
      expect(stderr).toContain(`${name} is not set, or empty`)
      expect(here.sandbox.requests).toHaveLength(0)
    }
  },
)
