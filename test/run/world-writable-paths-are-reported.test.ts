import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readPipeline, runOptions, runPipeline } from '../../src/index.ts'
import { startService } from '../fault/hostile-service.ts'

async function warnings(fileMode: string, folderMode: number): Promise<readonly string[]> {
  const service = await startService(({ json }) => json({ items: [], next: null }))
  const folder = await mkdtemp(join(tmpdir(), 'spillway-doors-'))
  try {
    const file = join(folder, 'pipeline.yaml')
    await writeFile(
      file,
      `
name: doors
service: { base_url: "${service.baseUrl}" }
extract: { domains: [acme.example] }
load: { path: out, file_mode: '${fileMode}' }
`,
    )
    await mkdir(join(folder, 'out'))
    await chmod(join(folder, 'out'), folderMode)
    const env = { SPILLWAY_TOKEN: 'a-token' }
    const pipeline = await readPipeline(file, { env, cwd: folder })
    const warnings: string[] = []
    const onLog = (level: string, message: string): void => void (level === 'warn' && warnings.push(message))
    await runPipeline(pipeline, await runOptions(pipeline, { env, onLog }))
    return warnings
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

test('a run warns of files and folders that everybody may write to', async () => {
  expect(await warnings('0640', 0o755)).toEqual([])
  expect(await warnings('0666', 0o755)).toEqual([expect.stringContaining('load.file_mode')])
  expect(await warnings('0600', 0o777)).toEqual([expect.stringContaining('load.path')])
})
