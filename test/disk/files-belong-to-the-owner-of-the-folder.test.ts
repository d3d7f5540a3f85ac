import { chownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { newOwner, storeAt, temporaryFolder } from './temporary-store.ts'

/** Of nobody. */
const USER = 12_345

/** Every kind of change. @returns the paths and owners of what is there */
async function changed(root: string): Promise<readonly (readonly [path: string, uid: number])[]> {
  const own = await storeAt(root).own(newOwner())
  await own.replace('_state/checkpoint.jsonl', ['one'])
  await own.create('_state/log/1', ['two'])
  await own.extend!('_state/log/1', 3, [Buffer.from('three')])
  const scratch = own.scratch()
  await scratch.append(Buffer.alloc(2 << 20))
  await scratch.create('_state/sealed/0')
  await own.publish('_state/sealed/0', 'credentials/query=a/part-00000.csv')
  await own.replace('_SUCCESS', [])
  const names = readdirSync(root, { recursive: true }).map(String)
  const owners = names.map((name) => [name, statSync(join(root, name)).uid] as const)
  await own.release()
  return owners
}

// Nobody else may give files away.
describe.runIf(process.getuid?.() === 0)('what root changes in a data set', () => {
  it.each(['', '_state'])('of another user belongs to that user, who owns its folder %s', async (folder) => {
    const root = join(temporaryFolder(), 'data')
    mkdirSync(join(root, '_state'), { recursive: true })
    chownSync(join(root, folder), USER, USER)
    const before = ['_state']
    const owners = await changed(root)
    expect(owners.length).toBeGreaterThan(8)
    expect(owners.filter(([path, uid]) => uid !== USER && !before.includes(path))).toEqual([])
  })

  it('of its own is its own', async () => {
    const owners = await changed(join(temporaryFolder(), 'data'))
    expect(owners.filter(([, uid]) => uid !== 0)).toEqual([])
  })
})
