import { cp, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { anError } from '../disk/errors.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { treeHashes } from './support.ts'
import { scenario, trial } from './trial.ts'

const EXPORT = scenario({ format: 'csv' })
const QUERY = 'credentials/query=domain.quillmere.net'

let kept: string

beforeAll(async () => {
  kept = scratchFolder()
  await trial(EXPORT, async ({ runHere, workspace }) => {
    expect(await runHere()).toMatchObject({ status: 'complete' })
    await cp(workspace.output, kept, { recursive: true })
  })
})

describe.skipIf(process.platform === 'win32')('a symbolic link below load.path is not followed:', () => {
  const names = [
    ...'_state _state/checkpoint.jsonl _state/log _state/sealed _state/orphans'.split(' '),
    ...'_quarantine _manifest.json _SUCCESS credentials'.split(' '),
    ...['', '/import_window=2024-01-01', '/import_window=2024-01-01/part-00000.csv'].map(
      (path) => QUERY + path,
    ),
  ]
  test.each(names)('%s', async (name) => {
    await trial(EXPORT, async (attempt) => {
      const { output, folder } = attempt.workspace
      await cp(kept, output, { recursive: true })
      const link = join(output, name)
      const target = join(folder, 'elsewhere')
      await mkdir(join(output, '_state/orphans'), { recursive: true })
      await rename(link, target)
      await symlink(target, link)
      const before = await treeHashes(folder)
      for (const fresh of [false, true]) {
        const error = await attempt.runHere({ fresh }).then(
          ({ error }) => error,
          (error: unknown) => error,
        )
        expect(error, `fresh: ${fresh}`).toEqual(anError('storage', `out/${name}`))
        expect(error).toMatchObject({ message: expect.stringContaining('a symbolic link') })
        const elsewhere = (all: Map<string, string>) =>
          [...all].filter(([path]) => path.startsWith('elsewhere'))
        expect(elsewhere(await treeHashes(folder))).toEqual(elsewhere(before))
      }
    })
  })

  test('but load.path itself may be one', async () => {
    await trial(EXPORT, async ({ runHere, workspace }) => {
      await mkdir(join(workspace.folder, 'disk'))
      await symlink(join(workspace.folder, 'disk'), workspace.output)
      expect(await runHere()).toMatchObject({ status: 'complete', error: null })
      expect(await runHere({ fresh: true })).toMatchObject({ status: 'complete', error: null })
      expect([...(await treeHashes(join(workspace.folder, 'disk'))).keys()]).toContain('_SUCCESS')
    })
  })
})

describe('a foreign file', () => {
  test('stays in a run and after --fresh, whatever its name', async () => {
    await trial(EXPORT, async ({ runHere, workspace }) => {
      const others = {
        'notes.0badf00d.tmp': 'mine',
        '_manifest.json.0badf00d.tmp': 'mine',
        '_state/draft.0badf00d.tmp': 'mine',
        '_state/log/notes.txt': 'mine',
        '_state/sealed/notes.txt': 'mine',
        '_quarantine/README': 'mine',
        [`${QUERY}/notes.txt`]: 'mine',
        [`${QUERY}/part-1.csv.bak`]: 'mine',
        'others/a.txt': 'mine',
      }
      for (const [name, text] of Object.entries(others)) {
        await mkdir(join(workspace.output, name, '..'), { recursive: true })
        await writeFile(join(workspace.output, name), text)
      }
      for (const fresh of [false, true]) {
        expect(await runHere({ fresh })).toMatchObject({ status: 'complete', error: null })
        for (const [name, text] of Object.entries(others))
          expect(await readFile(join(workspace.output, name), 'utf8'), name).toBe(text)
      }
    })
  })

  test.each(['_state/checkpoint.jsonl', '_manifest.json'])(
    'is never overwritten when its name is %s, and --fresh moves it to the orphans',
    async (name) => {
      await trial(EXPORT, async (attempt) => {
        const { output } = attempt.workspace
        await mkdir(join(output, '_state'), { recursive: true })
        await writeFile(join(output, name), '{"mine":true}\n')
        await expect(attempt.runHere()).rejects.toEqual(anError('damaged'))
        expect(await readFile(join(output, name), 'utf8')).toBe('{"mine":true}\n')
        expect(attempt.sandbox.requests).toHaveLength(0)
        expect(await attempt.runHere({ fresh: true })).toMatchObject({ status: 'complete', error: null })
        expect(await readFile(join(output, '_state/orphans', `${name}.orphan`), 'utf8')).toBe(
          '{"mine":true}\n',
        )
      })
    },
  )

  test('is moved to the orphans by --fresh when its name is that of a shard; shards on record are removed', async () => {
    await trial(EXPORT, async ({ runHere, workspace }) => {
      await cp(kept, workspace.output, { recursive: true })
      const stranger = `${QUERY}/import_window=2023-01-01/part-00000.csv`
      await mkdir(join(workspace.output, stranger, '..'), { recursive: true })
      await writeFile(join(workspace.output, stranger), 'mine')
      expect(await runHere({ fresh: true })).toMatchObject({ status: 'complete', error: null })
      const names = [...(await treeHashes(join(workspace.output, '_state'))).entries()].filter(
        ([, hash]) => hash !== '',
      )
      expect(names.map(([name]) => name)).toEqual(['checkpoint.jsonl', `orphans/${stranger}.orphan`])
    })
  })
})
