import { describe, expect, it } from 'vitest'
import { serial, settleAll } from '../../src/core/index.ts'

const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('serial', () => {
  it('runs tasks one at a time, in the order of the calls, and gives each its own result', async () => {
    const inTurn = serial()
    const steps: string[] = []
    const task = (name: string) => async () => {
      steps.push(`${name} begins`)
      await nextTick()
      steps.push(`${name} ends`)
      return name
    }
    expect(await Promise.all(['a', 'b', 'c'].map((name) => inTurn(task(name))))).toEqual(['a', 'b', 'c'])
    expect(steps).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  })

  it('runs the next task after one that fails', async () => {
    const inTurn = serial()
    const failed = inTurn(() => Promise.reject(new Error('no')))
    const next = inTurn(async () => 'next')
    await expect(failed).rejects.toThrow('no')
    expect(await next).toBe('next')
  })
})

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
