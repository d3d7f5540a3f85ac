import { expect, it } from 'vitest'
import { settleAll } from '../../src/core/index.ts'

it('a failure is thrown when the rest has ended, and the first by index counts', async () => {
  const ended: string[] = []
  const after = async (turns: number, name: string, fails: boolean): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    ended.push(name)
    if (fails) throw new Error(name)
  }
  const all = settleAll([after(50, 'late', true), after(1, 'early', true), after(90, 'last', false)])
  await expect(all).rejects.toThrow('late')
  expect(ended).toEqual(['early', 'late', 'last'])
})
