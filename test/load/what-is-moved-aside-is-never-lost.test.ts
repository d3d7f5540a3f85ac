import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ExportError } from '../../src/core/index.ts'
import { moveToOrphans } from '../../src/load/index.ts'
import { newOwner, temporaryStore, write } from '../disk/temporary-store.ts'

it('a file stays where it is when its copy fails', async () => {
  const { store } = temporaryStore()
  await write(store, '_manifest.json', 'of another program')
  const full = new ExportError({ kind: 'storage', what: 'The disk is full', where: '', next: '' })
  const own = { ...(await store.own(newOwner())), create: () => Promise.reject(full) }
  await expect(moveToOrphans(own, '_manifest.json')).rejects.toBe(full)
  expect(await store.size('_manifest.json')).toBe(18)
})

it('files of one name are kept side by side, and a folder with all that is in it', async () => {
  const { store } = temporaryStore()
  const own = await store.own(newOwner())
  const orphans: string[] = []
  for (const content of ['first', 'second']) {
    await own.create('_manifest.sig', [content])
    orphans.push(await moveToOrphans(own, '_manifest.sig'))
  }
  expect(orphans).toEqual(['_state/orphans/_manifest.sig.orphan', '_state/orphans/_manifest.sig.1.orphan'])
  for (const name of ['a', 'b/c']) await own.create(`_report.html/${name}`, [name])
  expect(await moveToOrphans(own, '_report.html')).toBe('_state/orphans/_report.html')
  expect(await store.size('_report.html')).toBeNull()
  const texts = await Promise.all(
    [...orphans, '_state/orphans/_report.html/a.orphan', '_state/orphans/_report.html/b/c.orphan'].map(
      async (path) => Buffer.from((await store.read(path)) ?? []).toString(),
    ),
  )
  expect(texts).toEqual(['first', 'second', 'a', 'b/c'])
})

it('an empty folder goes', async () => {
  const { store, root } = temporaryStore()
  const own = await store.own(newOwner())
  mkdirSync(join(root, '_SUCCESS'))
  await moveToOrphans(own, '_SUCCESS')
  expect(existsSync(join(root, '_SUCCESS'))).toBe(false)
})
