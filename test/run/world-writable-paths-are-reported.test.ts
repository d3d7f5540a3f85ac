import { chmod, mkdir, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readPipeline, runOptions, runPipeline } from '../../src/index.ts'
import { newWorkspace } from '../support/workspace.ts'

async function exported(file_mode: string, folderMode: number) {
  const { folder, output, env } = await newWorkspace({ load: { file_mode } }, { invalidRate: 0.2 })
  await mkdir(output)
  await chmod(output, folderMode)
  const pipeline = await readPipeline('pipeline.yaml', { env, cwd: folder })
  const warnings: string[] = []
  const onLog = (level: string, message: string): void => void (level === 'warn' && warnings.push(message))
  await runPipeline(pipeline, await runOptions(pipeline, { env, onLog }))
  return { output, warnings: warnings.filter((warning) => warning.includes('load.')) }
}

test('a run warns of files and folders that everybody may write to', async () => {
  expect((await exported('0640', 0o755)).warnings).toEqual([])
  expect((await exported('0666', 0o755)).warnings).toEqual([expect.stringContaining('load.file_mode')])
  expect((await exported('0600', 0o777)).warnings).toEqual([expect.stringContaining('load.path')])
})

test.skipIf(process.platform === 'win32')(
  'every file has load.file_mode, and every folder the matching mode, whatever the umask',
  async () => {
    const umask = process.umask(0)
    const { output } = await exported('0640', 0o750).finally(() => process.umask(umask))
    const entries = await readdir(output, { recursive: true, withFileTypes: true })
    const names = entries.map(({ name }) => name).sort()
    expect(names.join()).toMatch(/_manifest\.json.*_quarantine.*_state.*checkpoint\.jsonl.*part-00000/)
    for (const entry of entries) {
      const path = join(entry.parentPath, entry.name)
      const mode = (await stat(path)).mode & 0o777
      expect(mode.toString(8), path).toBe(entry.isFile() ? '640' : '750')
    }
  },
)
