import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { atTheEnd } from '../support/at-the-end.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { startService } from './hostile-service.ts'
import { pipelineYaml, SMALL, world } from './network-world.ts'
import { CLI, runCli } from './support.ts'

describe.concurrent('files and folders are made', () => {
  const modes = [
    {
      umask: '000',
      mode: '',
      files: 0o600,
      folders: 0o700,
      name: 'for the owner alone under a permissive umask',
    },
    {
      umask: '077',
      mode: '',
      files: 0o600,
      folders: 0o700,
      name: 'for the owner alone under a strict umask',
    },
    { umask: '022', mode: "file_mode: '0640'", files: 0o640, folders: 0o750, name: 'as load.file_mode says' },
  ]
  test.each(some(modes, 1))('$name', async ({ umask, mode, files, folders }) => {
    const { sandbox, workspace } = await world(
      { ...SMALL, records: 40, invalidRate: 0.2 },
      pipelineYaml({ load: mode }),
    )
    const line = `umask ${umask}; exec "$0" "$@"`
    const child = spawn('/bin/sh', ['-c', line, process.execPath, CLI, 'run', workspace.pipeline], {
      cwd: workspace.folder,
      env: { PATH: process.env.PATH, ...workspace.env },
    })
    const code = await new Promise((resolve) => child.on('close', resolve))
    expect(code).toBe(0)
    expect(sandbox.requests.length).toBeGreaterThan(0)
    const modes = await modesBelow(workspace.output)
    // Shards, manifest, quarantine and state are all among them.
    expect([...modes.keys()].join('\n')).toMatch(/_manifest.json.*_quarantine.*_state.*part-00000/s)
    for (const [path, { mode, isFolder }] of modes) {
      expect(mode.toString(8), path).toBe((isFolder ? folders : files).toString(8))
    }
  })
})

async function modesBelow(folder: string) {
  const modes = new Map<string, { mode: number; isFolder: boolean }>()
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const found = await stat(path)
    modes.set(relative(folder, path), { mode: found.mode & 0o777, isFolder: found.isDirectory() })
  }
  return new Map([...modes].sort(([a], [b]) => (a < b ? -1 : 1)))
}

describe.concurrent('a redirect is not followed', () => {
  test.each(some([307, 302], 1))('status %s: the other origin gets no request', async (status) => {
    const other = await startService((exchange) => exchange.json({ items: [], next: null, token: 'x' }))
    const service = await startService(({ json, path }) =>
      json('', status, { location: `${other.origin}${path}` }),
    )
    const { workspace, run } = await world(SMALL, pipelineYaml({ service: 'retries: 0' }))
    const env = { SPILLWAY_BASE_URL: service.baseUrl }
    const ended = await exits(1, run(env))
    expect(ended.stderr).toContain('Redirects are not followed')
    await exits(
      1,
      runCli({
        args: ['report', '7'],
        cwd: workspace.folder,
        env: { ...workspace.env, ...env },
      }),
    )
    expect(other.requests).toEqual([])
  })
})

test('an untrusted certificate is refused, even with NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
  const pem = readFileSync(join(import.meta.dirname, '../extract/self-signed.pem'))
  let requests = 0
  const server = createServer({ key: pem, cert: pem }, (_request, response) => {
    requests++
    response.end('{"items":[],"next":null}')
  })
  atTheEnd(() => server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { run } = await world(SMALL, pipelineYaml())
  const ended = await exits(
    1,
    run({
      SPILLWAY_BASE_URL: `https://localhost:${(server.address() as AddressInfo).port}/firework`,
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
    }),
  )
  expect(ended.stderr).toContain('certificate')
  expect(requests).toBe(0)
})

test('a token is not sent unencrypted to another machine unless the file allows it', async () => {
  const { run } = await world(SMALL, pipelineYaml())
  const ended = await exits(2, run({ SPILLWAY_BASE_URL: 'http://api.example.com/firework' }))
  expect(ended.stderr).toContain('allow_http')
})
